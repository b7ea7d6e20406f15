// How long reading or writing a file has taken, for the messages that say so.
#pragma once

#include <chrono>

namespace hindsight::rt {

inline double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace hindsight::rt
