#include <fmt/format.h>

#include "runtime/engine/hindsight.h"

namespace hindsight {

std::string Trap::to_string() const {
  std::string text = "trap: " + name;
  if (!detail.empty()) text += " (" + detail + ")";
  text += '\n';
  for (size_t i = 0; i < backtrace.size(); i++) {
    const Frame& frame = backtrace[i];
    text += fmt::format("  #{:<3} {}", i, frame.function);
    if (frame.wasm_offset) text += fmt::format(" at 0x{:x}", *frame.wasm_offset);
    if (frame.inlined) text += " (inlined)";
    text += '\n';
  }
  if (frames_left_out != 0) text += fmt::format("  and {} more frames\n", frames_left_out);
  return text;
}

}  // namespace hindsight
