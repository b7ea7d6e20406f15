// How long a test waits for what must happen in the end: much longer than any machine needs, however slow, loaded or
// small. A guard against hanging, and never a measure of speed. A bound on calls or rounds would be one, since a fast
// machine is through with them before anybody has looked.
#pragma once

#include <chrono>

namespace hindsight {

class Patience {
 public:
  bool lasts() const { return std::chrono::steady_clock::now() < end_; }

 private:
  // Below the time that ctest gives a test.
  const std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(120);
};

}  // namespace hindsight
