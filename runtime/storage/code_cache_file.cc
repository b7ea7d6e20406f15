#include "runtime/storage/code_cache_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "jit/code/code_image.h"
#include "jit/code/image_bytes.h"
#include "jit/wasm/sha256.h"

namespace hindsight::rt {
namespace {

using jit::ImageReader;
using jit::ImageWriter;

constexpr std::string_view kMagic = "hindcode";
// Of this file and of the images in it.
constexpr uint32_t kFormat = 3 << 16 | jit::kCodeImageFormat;
constexpr size_t kContentsAt = 8 + 4;

std::array<uint8_t, 32> hash_of(std::string_view text) {
  return wasm::sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

CachedFunction read_function(ImageReader& in) {
  CachedFunction function;
  function.function = FuncIndex(in.number<uint32_t>());
  function.reason = in.text();
  in.list(18, [&](uint32_t) {
    CachedPrefetch p;
    p.load = in.number<uint32_t>();
    const auto outcome = in.number<uint8_t>();
    in.check(outcome <= static_cast<uint8_t>(feedback::PrefetchOutcome::kNoSlice),
             "has an outcome that nobody knows");
    p.outcome = static_cast<feedback::PrefetchOutcome>(outcome);
    p.distance = in.number<uint32_t>();
    p.measured_gain = in.number<double>();
    in.check(std::isfinite(p.measured_gain), "has a gain that is no number");
    const auto change = in.number<uint8_t>();
    in.check(jit::is_change_kind(change), "has a change that nobody knows");
    p.change = static_cast<jit::ChangeKind>(change);
    function.prefetches.push_back(p);
  });
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
    out.list(function.prefetches, [&](const CachedPrefetch& p) {
      out.number(p.load);
      out.number(static_cast<uint8_t>(p.outcome));
      out.number(p.distance);
      out.number(p.measured_gain);
      out.number(static_cast<uint8_t>(p.change));
    });
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
