// The library never prints: it hands events to a sink that the embedder owns. The command's -v is one such
// sink. Thread-safe: any thread may log; the sink must tolerate concurrent calls.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace hindsight {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning };

// `topic` names the room or mechanism ("monitor", "policy", "trial", "compile"); `line` is one event, no newline.
// Both are printable (base/printable.h).
using LogSink = std::function<void(LogLevel level, std::string_view topic, std::string_view line)>;

}  // namespace hindsight
