#include "feedback/profile/pprof.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cmath>
#include <map>
#include <string>
#include <string_view>

namespace hindsight::feedback {
namespace {

// The part of protocol buffers that this takes: numbers as varints, and lengths with bytes.
class Message {
 public:
  void number(uint32_t field, uint64_t value) {
    if (value == 0) return;  // the default
    varint(field << 3);
    varint(value);
  }
  void bytes(uint32_t field, std::string_view contents) {
    varint(field << 3 | 2);
    varint(contents.size());
    text_ += contents;
  }
  void message(uint32_t field, const Message& inner) { bytes(field, inner.text_); }
  void packed(uint32_t field, const std::vector<uint64_t>& values) {
    Message inner;
    for (const uint64_t value : values) inner.varint(value);
    bytes(field, inner.text_);
  }
  const std::string& text() const { return text_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

// Field numbers, of profile.proto.
enum ProfileField : uint32_t {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kPeriodType = 11,
  kPeriod = 12,
  kComment = 13,
  kDefaultSampleType = 14,
};

// Each string once; the first is empty.
class Strings {
 public:
  Strings() { index({}); }
  uint64_t index(const std::string& text) {
    const auto [at, fresh] = indices_.try_emplace(text, list_.size());
    if (fresh) list_.push_back(text);
    return at->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, uint64_t> indices_;
  std::vector<std::string> list_;
};

Message value_type(Strings& strings, const char* type, const char* unit) {
  Message m;
  m.number(1, strings.index(type));
  m.number(2, strings.index(unit));
  return m;
}

uint64_t rounded(double value) {
  return value > 0 ? static_cast<uint64_t>(std::min(std::round(value), 9e18)) : 0;
}

Result<std::vector<std::byte>> gzipped(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;  // window bits, and the header of gzip instead of zlib's
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return make_error(ErrorKind::kResource, "no memory to compress the profile");
  std::vector<std::byte> out(deflateBound(&stream, text.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return make_error(ErrorKind::kResource, "the profile cannot be compressed");
  return out;
}

}  // namespace

Result<std::vector<std::byte>> to_pprof(const ProfileFile& profile) {
  Message all;
  Strings strings;
  all.message(kSampleType, value_type(strings, "samples", "count"));
  all.message(kSampleType, value_type(strings, "cpu", "nanoseconds"));
  all.message(kSampleType, value_type(strings, "stalls", "count"));
  uint64_t functions = 0, locations = 0, mappings = 0;
  double samples = 0, seconds = 0;
  for (const ModuleProfile& module : profile.modules) {
    const uint64_t file = strings.index(module.name.empty() ? module.hash_hex : module.name);
    Message mapping;
    mapping.number(1, ++mappings);
    mapping.number(3, uint64_t{1} << 32);  // where addresses end: a module is smaller
    mapping.number(5, file);
    mapping.number(6, strings.index(module.hash_hex));
    mapping.number(7, 1);  // has functions,
    mapping.number(8, 1);  // files
    mapping.number(9, 1);  // and lines
    all.message(kMapping, mapping);
    for (const FunctionSamples& s : module.samples) {
      Message function;
      function.number(1, ++functions);
      const uint64_t name = strings.index(s.name);
      function.number(2, name);
      function.number(3, name);
      function.number(4, file);
      function.number(5, s.begin.value);
      all.message(kFunction, function);
      samples += s.samples;
      seconds += s.seconds_baseline + s.seconds_optimized;
      const double ns_a_sample =
          s.samples > 0 ? 1e9 * (s.seconds_baseline + s.seconds_optimized) / s.samples : 0;
      for (const FunctionSamples::Place& place : s.places) {
        const bool known = place.offset.value != ~uint32_t{0};
        const uint64_t offset = known ? place.offset.value : s.begin.value;
        Message line, location, sample;
        line.number(1, functions);
        line.number(2, offset);
        location.number(1, ++locations);
        location.number(2, mappings);
        location.number(3, offset);
        location.message(4, line);
        all.message(kLocation, location);
        sample.packed(1, {locations});
        sample.packed(2,
                      {rounded(place.samples), rounded(place.samples * ns_a_sample), rounded(place.stalls)});
        all.message(kSample, sample);
      }
    }
    all.number(kComment,
               strings.index(fmt::format("{} runs, faded to {:.2f}{}{}", module.runs_seen, module.runs,
                                         module.options.empty() ? "" : "; ", module.options)));
  }
  all.message(kPeriodType, value_type(strings, "cpu", "nanoseconds"));
  all.number(kPeriod, samples > 0 ? rounded(1e9 * seconds / samples) : 0);
  all.number(kDefaultSampleType, strings.index("cpu"));
  for (const std::string& text : strings.list()) all.bytes(kStringTable, text);
  return gzipped(all.text());
}

}  // namespace hindsight::feedback
