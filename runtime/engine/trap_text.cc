#include <fmt/format.h>

#include "base/printable.h"
#include "runtime/engine/hindsight.h"

namespace hindsight {

std::string Trap::to_string() const {
  std::string text = "trap: " + name;
  if (!detail.empty()) text += " (" + printable_line(detail) + ")";
  text += '\n';
  for (size_t i = 0; i < backtrace.size(); i++) {
    const Frame& frame = backtrace[i];
    text += fmt::format("  #{:<3} {}", i, printable_name(frame.function));
    if (frame.wasm_offset) text += fmt::format(" at 0x{:x}", *frame.wasm_offset);
    if (frame.inlined) text += " (inlined)";
    text += '\n';
  }
  if (frames_left_out != 0) text += fmt::format("  and {} more frames\n", frames_left_out);
  return text;
}

}  // namespace hindsight
