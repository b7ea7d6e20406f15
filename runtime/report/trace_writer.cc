#include "runtime/report/trace_writer.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>

namespace hindsight::report {
namespace {

constexpr uint8_t kValue = 1, kMiss = 4, kCoreClocks = 5;
// Threads come and go; beyond this many open slices the oldest thread's is written.
constexpr size_t kMaxSlices = 1024;

// A JSON string with its quotes. Names are whatever a module says they are.
std::string json_string(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Trace-event times are microseconds.
std::string microseconds(uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

}  // namespace

Result<TraceFormat> trace_format_of(std::string_view path) {
  if (path.ends_with(".jsonl")) return TraceFormat::kLines;
  if (path.ends_with(".json")) return TraceFormat::kChrome;
  if (path.ends_with(".lwp")) return TraceFormat::kRaw;
  return make_error(
      ErrorKind::kUsage,
      fmt::format(
          "'{}' says no format; end it with .json (Chrome trace, for Perfetto), .jsonl (JSON lines, for "
          "`hindsight lwp records`) or .lwp (the bare 32-byte records)",
          path));
}

TraceWriter::TraceWriter(std::ostream& out, TraceFormat format, TraceHead head, uint64_t limit)
    : out_(out), format_(format), head_(std::move(head)), limit_(limit) {
  if (format_ == TraceFormat::kLines) {
    out_ << fmt::format("{{\"hindsight_trace\":1,\"program\":{},\"start_ns\":{}}}\n",
                        json_string(head_.program), head_.start_ns);
  } else if (format_ == TraceFormat::kChrome) {
    out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    put(fmt::format("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{{\"name\":{}}}}}",
                    json_string(head_.program)));
  }
}

void TraceWriter::put(std::string_view object) {
  if (!first_) out_ << ",\n";
  first_ = false;
  out_ << object;
}

void TraceWriter::add(const LwpRecord& record) {
  if (written_ >= limit_ || !out_) {
    ++left_out_;
    return;
  }
  switch (format_) {
    case TraceFormat::kLines:
      add_line(record);
      break;
    case TraceFormat::kChrome:
      add_chrome(record);
      break;
    case TraceFormat::kRaw: {
      const auto bytes = encode_lwp_record(record);
      out_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      break;
    }
  }
  ++(out_ ? written_ : left_out_);
}

void TraceWriter::add_line(const LwpRecord& r) {
  std::string line = fmt::format(
      "{{\"ns\":{},\"thread\":{},\"id\":{},\"flags\":{},\"data1\":{},\"data2\":{},\"address\":\"{:#x}\"",
      since_start(r.time_ns), r.thread, r.event_id, r.flags, r.data1, r.data2, r.address);
  auto out = std::back_inserter(line);
  if (!r.exact_time) line += ",\"drained\":true";
  if (r.core_id != 0) fmt::format_to(out, ",\"core\":{}", r.core_id);
  if (!r.function.empty())
    fmt::format_to(out, ",\"function\":{},\"tier\":\"{}\"", json_string(r.function),
                   r.optimized ? "optimized" : "baseline");
  if (r.wasm_offset) fmt::format_to(out, ",\"wasm\":\"{:#x}\"", *r.wasm_offset);
  if (r.from_guest) line += ",\"guest\":true";
  if (!r.label.empty()) fmt::format_to(out, ",\"name\":{}", json_string(r.label));
  if (r.guest_address) fmt::format_to(out, ",\"guest_address\":\"{:#x}\"", *r.guest_address);
  if (r.guest_memory != 0) fmt::format_to(out, ",\"guest_memory\":{}", r.guest_memory);
  if (r.cpu_ns != 0) fmt::format_to(out, ",\"cpu_ns\":{}", r.cpu_ns);
  line += "}\n";
  out_ << line;
}

void TraceWriter::put_slice(int32_t thread, const Slice& slice) {
  put(
      fmt::format("{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":1,\"tid\":{},\"ts\":{},\"dur\":{},"
                  "\"args\":{{\"samples\":{}}}}}",
                  slice.optimized ? "optimized" : "baseline", json_string(slice.function), thread,
                  microseconds(slice.begin), microseconds(slice.end - slice.begin), slice.samples));
}

void TraceWriter::add_chrome(const LwpRecord& r) {
  const uint64_t at = since_start(r.time_ns);
  if (r.event_id == kCoreClocks) {
    // A sample stands for the time before it. Samples of one function without a gap are one slice.
    const std::string_view function = r.function.empty() ? "(unknown code)" : r.function;
    const uint64_t begin = at > r.cpu_ns ? at - r.cpu_ns : 0;
    auto found = slices_.find(r.thread);
    if (found != slices_.end()) {
      Slice& slice = found->second;
      if (slice.function == function && slice.optimized == r.optimized && at >= slice.end &&
          begin <= slice.end + r.cpu_ns) {
        slice.end = at;
        ++slice.samples;
        return;
      }
      put_slice(r.thread, slice);
      const uint64_t from = std::min(std::max(begin, slice.end), at);  // never over the one before
      slice = {std::string(function), from, at, 1, r.optimized};
      return;
    }
    if (slices_.size() >= kMaxSlices) {
      put_slice(slices_.begin()->first, slices_.begin()->second);
      slices_.erase(slices_.begin());
    }
    slices_.emplace(r.thread, Slice{std::string(function), begin, at, 1, r.optimized});
    return;
  }
  std::string place;
  if (!r.function.empty()) {
    place = r.wasm_offset
                ? fmt::format(",\"at\":{}", json_string(fmt::format("{} +{:#x}", r.function, *r.wasm_offset)))
                : fmt::format(",\"at\":{}", json_string(r.function));
  }
  if (r.from_guest) {
    const std::string name = !r.label.empty()       ? std::string(r.label)
                             : r.event_id == kValue ? fmt::format("value, flags {}", r.flags)
                                                    : fmt::format("event, flags {}", r.flags);
    if (r.event_id == kValue) {
      put(
          fmt::format("{{\"ph\":\"C\",\"cat\":\"guest\",\"name\":{},\"pid\":1,\"tid\":{},\"ts\":{},\"args\":{"
                      "{\"value\":{}}}}}",
                      json_string(name), r.thread, microseconds(at), r.data2));
    } else {
      put(
          fmt::format("{{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"guest\",\"name\":{},\"pid\":1,\"tid\":{},\"ts\":{"
                      "},\"args\":{{\"flags\":{},"
                      "\"data1\":{},\"data2\":{}{}}}}}",
                      json_string(name), r.thread, microseconds(at), r.flags, r.data1, r.data2, place));
    }
    return;
  }
  std::string arguments = fmt::format("\"flags\":{},\"data1\":{},\"data2\":{}", r.flags, r.data1, r.data2);
  if (r.event_id == kMiss && r.guest_address)
    arguments += fmt::format(",\"guest_address\":\"{:#x}\"", *r.guest_address);
  put(
      fmt::format("{{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"lwp\",\"name\":{},\"pid\":1,\"tid\":{},\"ts\":{},"
                  "\"args\":{{{}{}}}}}",
                  json_string(lwp_event_name(r.event_id)), r.thread, microseconds(at), arguments, place));
}

Status TraceWriter::finish(const TraceEnd& end) {
  const std::string counts =
      fmt::format("\"unit\":{},\"records\":{},\"left_out\":{},\"emitted\":{},\"missed\":{},\"lost\":{}",
                  json_string(end.unit), written_, left_out_, end.emitted, end.missed, end.lost);
  if (format_ == TraceFormat::kLines) {
    out_ << fmt::format("{{\"end\":true,{}}}\n", counts);
  } else if (format_ == TraceFormat::kChrome) {
    for (const auto& [thread, slice] : slices_) put_slice(thread, slice);
    slices_.clear();
    out_ << fmt::format("\n],\"otherData\":{{{}}}}}\n", counts);
  }
  out_.flush();
  if (!out_) return make_error(ErrorKind::kResource, "the trace could not be written completely");
  return {};
}

}  // namespace hindsight::report
