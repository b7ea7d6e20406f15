#include "tests/jit/determinism/code_digest.h"

#include <cstring>

#include "jit/baseline/baseline_compiler.h"
#include "jit/optimizing/optimizer.h"
#include "jit/wasm/sha256.h"
#include "tests/fuzz/loop_text.h"

extern "C" hindsight::jit::Optimizer* hindsight_create_optimizer();

namespace hindsight::jit::testing {
namespace {

// Two of the machine's words differ from one place in memory to the other: the distance to what lies outside
// of the version's own memory. There is none in instructions: everything is reached through the context or
// the version's own table of addresses, after the instructions.
std::string digest_of(const CodeVersion& version) {
  std::vector<uint8_t> bytes;
  const auto append = [&](const void* from, size_t size) {
    const auto* at = static_cast<const uint8_t*>(from);
    bytes.insert(bytes.end(), at, at + size);
  };
  append(version.begin(), version.code_size.value);
  for (const PcRow& row : version.pc_map.rows()) {
    append(&row.code, sizeof row.code);
    append(&row.wasm, sizeof row.wasm);
    append(&row.inline_site, sizeof row.inline_site);
  }
  std::string text = std::to_string(version.code_size.value) + " bytes ";
  for (const uint8_t byte : wasm::sha256(bytes)) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

}  // namespace

Digest digest_of(std::span<const uint8_t> bytes, uint32_t stride) {
  static Optimizer* const optimizer = hindsight_create_optimizer();
  Digest digest;
  auto arena = CodeArena::create();
  auto module = wasm::decode_module(std::vector<uint8_t>(bytes.begin(), bytes.end()), "module");
  if (!arena || !module) {
    digest["module"] = "cannot be used";
    return digest;
  }
  std::vector<std::unique_ptr<CodeVersion>> alive;
  for (uint32_t f = (*module)->imported_functions; f < (*module)->function_count(); ++f) {
    const std::string name = std::to_string(f);
    auto baseline = compile_baseline(**module, FuncIndex(f), {}, **arena);
    digest[name + " baseline"] = baseline ? digest_of(**baseline) : baseline.error().describe();
    if (baseline) alive.push_back(std::move(*baseline));
    const auto& loops = (*module)->body(FuncIndex(f)).loops;
    if (f % stride != 0) continue;
    OptimizeRequest request;
    request.module = *module;
    request.function = FuncIndex(f);
    for (uint32_t loop = 0; loop < std::min<size_t>(2, loops.size()); ++loop)
      request.osr_loops.push_back(LoopIndex(loop));
    auto optimized = optimizer->compile(request, **arena);
    digest[name + " optimized"] = optimized ? digest_of(*optimized->version) : optimized.error().describe();
    if (optimized) alive.push_back(std::move(optimized->version));
  }
  return digest;
}

std::string to_text(const Digest& digest) {
  std::string text;
  for (const auto& [name, value] : digest) text += name + ": " + value + "\n";
  return text;
}

std::vector<std::vector<uint8_t>> random_loops(uint32_t first_seed, uint32_t count) {
  std::vector<std::vector<uint8_t>> modules;
  for (uint32_t seed = first_seed; seed < first_seed + count; ++seed) {
    const std::string text = seed % 2 ? fuzz::LoopText(seed).make() : fuzz::VectorLoopText(seed).make();
    auto bytes = wasm::assemble_text(text, "loop.wat");
    if (bytes) modules.emplace_back(bytes->begin(), bytes->end());
  }
  return modules;
}

}  // namespace hindsight::jit::testing
