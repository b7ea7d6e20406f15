#include "runtime/storage/code_cache_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "feedback/profile/describe.h"
#include "jit/code/code_image.h"
#include "jit/code/image_bytes.h"
#include "jit/wasm/sha256.h"

namespace hindsight::rt {
namespace {

using jit::ImageReader;
using jit::ImageWriter;

constexpr std::string_view kMagic = "hindcode";
// The format of this file and of the images in it.
constexpr uint32_t kFormat = 4 << 16 | jit::kCodeImageFormat;
constexpr size_t kContentsAt = 8 + 4;

std::array<uint8_t, 32> hash_of(std::string_view text) {
  return wasm::sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Archives for what feedback/profile/describe.h says of outcomes: fields by their order alone.
class BytesWriter {
 public:
  [[maybe_unused]] static constexpr bool kReads = false;  // as every archive says it
  explicit BytesWriter(ImageWriter& out) : out_(out) {}
  bool has(const char*, bool present) {
    out_.number(static_cast<uint8_t>(present));
    return present;
  }
  void number(const char*, double value) { out_.number(value); }
  void count(const char*, uint32_t value) { out_.number(value); }
  void id(const char*, WasmOffset value) { out_.number(value.value); }
  void text(const char*, const std::string& value) { out_.text(value); }
  template <typename Enum>
  void word(const char*, Enum value, Enum) {
    out_.number(static_cast<uint8_t>(value));
  }
  template <typename Element>
  void list(const char*, std::vector<Element>& elements, size_t /*most*/) {
    out_.list(elements, [&](const Element& element) { describe(*this, const_cast<Element&>(element)); });
  }
  void require(const char*, bool, const char*) {}

 private:
  ImageWriter& out_;
};

class BytesReader {
 public:
  [[maybe_unused]] static constexpr bool kReads = true;  // as every archive says it
  explicit BytesReader(ImageReader& in) : in_(in) {}
  bool has(const char*, bool) { return in_.number<uint8_t>() != 0; }
  void number(const char*, double& value) {
    value = in_.number<double>();
    in_.check(std::isfinite(value), "has a gain that is no number");
  }
  void count(const char*, uint32_t& value) { value = in_.number<uint32_t>(); }
  void id(const char*, WasmOffset& value) { value = WasmOffset(in_.number<uint32_t>()); }
  void text(const char*, std::string& value) { value = in_.text(); }
  template <typename Enum>
  void word(const char*, Enum& value, Enum last) {
    const auto number = in_.number<uint8_t>();
    const bool known = number <= static_cast<uint8_t>(last);
    in_.check(known, "has a change or an outcome that nobody knows");
    value = known ? static_cast<Enum>(number) : Enum{};
  }
  template <typename Element>
  void list(const char*, std::vector<Element>& elements, size_t most) {
    constexpr size_t kLeast = 1 + 4 + 1 + 5;  // bytes of an entry with nothing in it
    in_.list(kLeast, [&](uint32_t i) {
      in_.check(i < most, "has more outcomes than there are");
      describe(*this, elements.emplace_back());
    });
  }
  void require(const char*, bool holds, const char*) { in_.check(holds, "has two outcomes of one change"); }

 private:
  ImageReader& in_;
};

CachedFunction read_function(ImageReader& in) {
  CachedFunction function;
  function.function = FuncIndex(in.number<uint32_t>());
  function.reason = in.text();
  BytesReader changes(in);
  describe(changes, "changes", function.changes);
  in.list(16, [&](uint32_t) {
    const auto call = in.number<uint32_t>();
    feedback::ValueCounts counts;
    counts.total = in.number<uint64_t>();
    in.check(counts.total < uint64_t{1} << 62, "has more records of calls than there can be");
    in.list(16, [&](uint32_t i) {
      const auto value = in.number<uint64_t>();
      const auto count = in.number<uint64_t>();
      in.check(i < feedback::ValueCounts::kCandidates && count <= counts.total,
               "has calls that do not add up");
      counts.candidates.push_back({value, count});
    });
    function.calls.emplace(call, std::move(counts));
  });
  const auto image = in.block();
  function.image.assign(image.begin(), image.end());
  return function;
}

}  // namespace

std::string CacheKey::file_name() const {
  const auto of_options = hash_of(options);
  return hex(std::span(module).first(16)) + "-" + hex(std::span(of_options).first(8)) + ".code";
}

std::vector<std::byte> format_cache_file(const CacheFile& file) {
  ImageWriter out;
  for (const char c : kMagic) out.number(c);
  out.number(kFormat);
  out.block(std::as_bytes(std::span(file.key.module)));
  out.text(file.key.options);
  out.text(file.key.machine);
  out.text(file.module_name);
  out.text(file.llvm_path);
  out.list(file.functions, [&](const CachedFunction& function) {
    out.number(function.function.value);
    out.text(function.reason);
    BytesWriter changes(out);
    describe(changes, "changes",
             const_cast<feedback::ChangeLedger&>(function.changes));  // it changes nothing
    out.list(function.calls, [&](const auto& call) {
      out.number(call.first);
      out.number(call.second.total);
      out.list(call.second.candidates, [&](const feedback::ValueCounts::Candidate& candidate) {
        out.number(candidate.value);
        out.number(candidate.count);
      });
    });
    out.block(function.image);
  });
  return out.take();
}

Result<CacheFile> parse_cache_file(std::span<const std::byte> bytes) {
  const auto bad = [](std::string why) { return make_error(ErrorKind::kUsage, std::move(why)); };
  if (bytes.size() < kContentsAt) return bad(fmt::format("is truncated: {} bytes", bytes.size()));
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return bad("is no file of the code cache");
  uint32_t format = 0;
  std::memcpy(&format, bytes.data() + kMagic.size(), sizeof format);
  if (format != kFormat)
    return bad(fmt::format("is of format {:x}, and this program's is {:x}", format, kFormat));
  ImageReader in(bytes.subspan(kContentsAt));
  CacheFile file;
  const auto module = in.block();
  in.check(module.size() == file.key.module.size(), "names its module by no SHA-256");
  if (!in.failed()) std::memcpy(file.key.module.data(), module.data(), module.size());
  file.key.options = in.text();
  file.key.machine = in.text();
  file.module_name = in.text();
  file.llvm_path = in.text();
  in.list(20, [&](uint32_t) {
    CachedFunction function = read_function(in);
    in.check(file.functions.empty() || file.functions.back().function < function.function,
             "has functions out of order");
    if (!in.failed()) file.functions.push_back(std::move(function));
  });
  in.check(in.remaining() == 0, "has more bytes than it needs");
  if (in.failed())
    return bad(fmt::format("is damaged: it {} (at byte {})", in.defect(), kContentsAt + in.defect_at()));
  return file;
}

}  // namespace hindsight::rt
