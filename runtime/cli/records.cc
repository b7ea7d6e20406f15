// `hindsight lwp records`: a trace in JSON Lines (runtime/report/trace_writer.h says what is in it) or bare
// 32-byte records, as lines for people. Both are read as a stream, in constant memory, and both may be
// anything: a file is hostile until proven otherwise.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/messages.h"
#include "runtime/report/text.h"

namespace hindsight::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxLine = 64 * 1024;

class Output {
 public:
  explicit Output(const RecordsOptions& options) : options_(options) {}

  void add(const LwpRecord& record, const std::string& line) {
    ++counts_[{record.event_id, record.from_guest}];
    ++records_;
    if (options_.summary) return;
    if (shown_ >= options_.limit) return;
    ++shown_;
    fmt::print("{}\n", line);
  }
  uint64_t records() const { return records_; }

  void summarize() const {
    if (!options_.summary && shown_ < records_) fmt::print("... {} more\n", records_ - shown_);
    std::string kinds;
    for (const auto& [key, count] : counts_) {
      kinds += fmt::format("{}{} {}{}", kinds.empty() ? "" : ", ", count, lwp_event_name(key.first),
                           key.second && key.first == 1 ? " of the guest" : "");
    }
    fmt::print("{} records{}{}\n", records_, kinds.empty() ? "" : ": ", kinds);
  }

 private:
  const RecordsOptions& options_;
  std::map<std::pair<uint8_t, bool>, uint64_t> counts_;  // (event, of the guest)
  uint64_t records_ = 0, shown_ = 0;
};

Error bad(const RecordsOptions& options, std::string message, std::optional<uint64_t> offset = {}) {
  return Error{ErrorKind::kResource, std::move(message), options.path, offset};
}

// ---------------------------------------------------------------- bare records

Status read_bare(std::istream& in, const RecordsOptions& options, std::string head, Output& out) {
  constexpr size_t kRecord = 32;
  const LwpLayout layout = options.layout == "2007" ? LwpLayout::kProposal2007 : LwpLayout::kFinal;
  std::string chunk = std::move(head);
  uint64_t offset = 0;
  while (true) {
    const size_t have = chunk.size();
    chunk.resize(size_t{1} << 16);
    in.read(chunk.data() + have, static_cast<std::streamsize>(chunk.size() - have));
    chunk.resize(have + static_cast<size_t>(in.gcount()));
    size_t at = 0;
    for (; at + kRecord <= chunk.size(); at += kRecord, offset += kRecord) {
      std::array<std::byte, kRecord> bytes;
      std::memcpy(bytes.data(), chunk.data() + at, kRecord);
      const auto record = decode_lwp_record(bytes, layout);
      if (!record) {
        const auto id = static_cast<unsigned>(static_cast<uint8_t>(chunk[at]));
        return std::unexpected(bad(
            options,
            fmt::format(
                "record {} has EventId {}, which the {} layout does not define; these are no LWP records{}",
                offset / kRecord, id, layout == LwpLayout::kFinal ? "final" : "2007",
                offset == 0 ? "" : " from here on"),
            offset));
      }
      out.add(*record, fmt::format("{:>8}  {}", offset / kRecord, describe_lwp_record(*record)));
    }
    chunk.erase(0, at);
    if (!in) break;
  }
  if (!chunk.empty()) {
    return std::unexpected(bad(
        options, fmt::format("the last record is cut off: {} of {} bytes", chunk.size(), kRecord), offset));
  }
  if (out.records() == 0) return std::unexpected(bad(options, "the file is empty"));
  return {};
}

// ---------------------------------------------------------------- JSON Lines

template <typename T>
T number(const Json& object, const char* key, T otherwise = 0) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  if (found->is_number_unsigned()) return static_cast<T>(found->get<uint64_t>());
  if (found->is_number_integer()) return static_cast<T>(found->get<int64_t>());
  if (found->is_string()) {  // "0x12ab"
    const std::string& text = found->get_ref<const std::string&>();
    uint64_t value = 0;
    if (text.starts_with("0x")) std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
    return static_cast<T>(value);
  }
  return otherwise;
}

std::string text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool truth(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::string record_line(const LwpRecord& record, const Json& object) {
  std::string place = text(object, "function");
  if (place.empty()) place = "(unattributed)";
  if (record.wasm_offset) place += fmt::format(" +{:#x}", *record.wasm_offset);
  std::string line =
      fmt::format("{:>14.9f} s{} thread {:<8} {}: {}", static_cast<double>(record.time_ns) * 1e-9,
                  record.exact_time ? " " : "~", record.thread, place, describe_lwp_record(record));
  if (record.guest_address) line += fmt::format(", guest address {:#x}", *record.guest_address);
  if (record.guest_memory != 0) line += fmt::format(" of memory {}", record.guest_memory);
  if (const std::string name = text(object, "name"); !name.empty()) line += ", \"" + name + "\"";
  return printable(line);
}

// Appends up to the next newline to `line`; at most kMaxLine + 1 bytes, so that a file without newlines is
// not read into memory. False: the file ended instead.
bool read_line(std::istream& in, std::string& line) {
  while (line.size() <= kMaxLine) {
    const int c = in.get();
    if (c == std::istream::traits_type::eof()) return false;
    if (c == '\n') return true;
    line += static_cast<char>(c);
  }
  return true;
}

Status read_lines(std::istream& in, const RecordsOptions& options, std::string head, Output& out) {
  bool ended = false;
  uint64_t lines = 0;
  const auto cut_off = [&](const std::string& why) {
    return std::unexpected(bad(options, fmt::format("line {}: {}", lines, why)));
  };
  for (bool more = true; more;) {
    std::string line = std::exchange(head, {});
    more = read_line(in, line);
    if (line.empty()) continue;
    ++lines;
    if (line.size() > kMaxLine) return cut_off(fmt::format("longer than {} bytes: no record", kMaxLine));
    if (lines == 1 && line.find("\"traceEvents\"") != std::string::npos)
      return cut_off(
          "a Chrome trace; open it in Perfetto (ui.perfetto.dev), or trace to a file that ends in .jsonl");
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded() || !object.is_object())
      return cut_off(more ? "is no JSON object" : "is no JSON object; the trace is cut off here");
    if (lines == 1) {
      const auto version = number<int64_t>(object, "hindsight_trace", -1);
      if (version != 1)
        return cut_off("no trace of `hindsight run --trace FILE.jsonl`, or of a later version");
      if (const std::string program = text(object, "program"); !program.empty())
        fmt::print("{}\n", printable("trace of " + program));
      continue;
    }
    if (truth(object, "end")) {
      ended = true;
      out.summarize();
      fmt::print("{}\n",
                 printable(fmt::format("unit {}; {} written by threads into their rings, {} missed, {} lost "
                                       "by the kernel, {} left out of the file",
                                       text(object, "unit"), number<uint64_t>(object, "emitted"),
                                       number<uint64_t>(object, "missed"), number<uint64_t>(object, "lost"),
                                       number<uint64_t>(object, "left_out"))));
      break;
    }
    if (!object.contains("id")) return cut_off("has no \"id\": no record");
    LwpRecord record;
    record.event_id = number<uint8_t>(object, "id");
    record.core_id = number<uint8_t>(object, "core");
    record.flags = number<uint16_t>(object, "flags");
    record.data1 = number<uint32_t>(object, "data1");
    record.data2 = number<uint64_t>(object, "data2");
    record.address = number<uint64_t>(object, "address");
    record.time_ns = number<uint64_t>(object, "ns");
    record.thread = number<int32_t>(object, "thread");
    record.exact_time = !truth(object, "drained");
    record.from_guest = truth(object, "guest");
    if (object.contains("wasm")) record.wasm_offset = number<uint32_t>(object, "wasm");
    if (object.contains("guest_address")) record.guest_address = number<uint64_t>(object, "guest_address");
    record.guest_memory = number<uint32_t>(object, "guest_memory");
    out.add(record, record_line(record, object));
  }
  if (!ended) return cut_off("the trace is cut off: its last line, with the counts, is missing");
  return {};
}

}  // namespace

int lwp_records_command(const RecordsOptions& options) {
  if (options.layout != "final" && options.layout != "2007") {
    return fail(Error{ErrorKind::kUsage,
                      fmt::format("'{}' is no layout; one of final, 2007", options.layout),
                      "--layout",
                      {}});
  }
  std::ifstream file;
  if (options.path != "-") file.open(options.path, std::ios::binary);
  std::istream& in = options.path == "-" ? std::cin : file;
  if (!in) return fail(bad(options, fmt::format("cannot be opened: {}", std::strerror(errno))));
  // A trace begins with '{'; as an EventId that is 123, which nobody defines.
  std::string head(1, '\0');
  in.read(head.data(), 1);
  head.resize(static_cast<size_t>(in.gcount()));
  Output out(options);
  const bool lines = head == "{";
  const Status read = lines ? read_lines(in, options, head, out) : read_bare(in, options, head, out);
  if (!read || !lines) {
    if (out.records() != 0) out.summarize();
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) return kCannotLoad;  // nobody reads on
  return read ? kOk : fail(read.error());
}

}  // namespace hindsight::cli
