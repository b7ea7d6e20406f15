// How fast the first tier makes code, with Google Benchmark. Not a test: nothing here passes or fails.
//   build/release/bin/compile_benchmark [--module=FILE] [--bytes=N] [--write=FILE]
// The module's functions are repeated until it has 5 MB of code, or N bytes. Bytes are those of function bodies, time
// is CPU time of the one thread. `code_per_byte` is machine code, `memory_per_byte` that and what is kept beside it.
// --write measures nothing and writes the repeated module, which runs as the given one does.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "jit/baseline/baseline_compiler.h"
#include "jit/wasm/module.h"

namespace hindsight::jit {
namespace {

using Bytes = std::vector<uint8_t>;

size_t wanted_bytes = 5'000'000;

std::string module_file = HINDSIGHT_BENCHMARK_MODULE;

uint32_t read_leb(const Bytes& bytes, size_t& at) {
  uint32_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const uint8_t byte = bytes.at(at++);
    value |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}
void write_leb(Bytes& out, uint32_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<uint8_t>(value | 0x80));
  out.push_back(static_cast<uint8_t>(value));
}

// The module with the entries of its function and code sections repeated. They call the originals.
Bytes repeated(const Bytes& module) {
  struct Section {
    uint8_t id;
    size_t begin, end;
  };
  std::vector<Section> sections;
  size_t code_bytes = 0;
  for (size_t at = 8; at < module.size();) {
    const uint8_t id = module[at++];
    const uint32_t size = read_leb(module, at);
    sections.push_back({id, at, at + size});
    if (id == 10) code_bytes = size;
    at += size;
  }
  const size_t times = code_bytes == 0 ? 1 : wanted_bytes / code_bytes + 1;
  Bytes out(module.begin(), module.begin() + 8);
  for (const Section& section : sections) {
    constexpr uint8_t kCustom = 0, kFunction = 3, kCode = 10;
    if (section.id == kCustom) continue;
    Bytes content;
    if (section.id == kFunction || section.id == kCode) {
      size_t at = section.begin;
      const uint32_t count = read_leb(module, at);
      write_leb(content, static_cast<uint32_t>(count * times));
      for (size_t i = 0; i < times; ++i)
        content.insert(content.end(), module.begin() + static_cast<std::ptrdiff_t>(at),
                       module.begin() + static_cast<std::ptrdiff_t>(section.end));
    } else {
      content.assign(module.begin() + static_cast<std::ptrdiff_t>(section.begin),
                     module.begin() + static_cast<std::ptrdiff_t>(section.end));
    }
    out.push_back(section.id);
    write_leb(out, static_cast<uint32_t>(content.size()));
    out.insert(out.end(), content.begin(), content.end());
  }
  return out;
}

std::optional<Bytes> read_module() {
  std::ifstream file(module_file, std::ios::binary);
  if (!file) return {};
  return repeated(Bytes(std::istreambuf_iterator<char>(file), {}));
}

size_t code_bytes(const wasm::Module& module) {
  size_t sum = 0;
  for (const wasm::FunctionBody& body : module.bodies) sum += body.end.value - body.begin.value;
  return sum;
}

void decode_and_validate(benchmark::State& state) {
  const std::optional<Bytes> bytes = read_module();
  if (!bytes) return state.SkipWithError(("cannot read " + module_file).c_str());
  size_t code = 0;
  for (auto _ : state) {
    auto module = wasm::decode_module(*bytes, module_file);
    if (!module) return state.SkipWithError(module.error().describe().c_str());
    code += code_bytes(**module);
  }
  state.SetBytesProcessed(static_cast<int64_t>(code));
}
BENCHMARK(decode_and_validate)->Unit(benchmark::kMillisecond);

void compile_all(benchmark::State& state, bool decode_too) {
  const std::optional<Bytes> bytes = read_module();
  if (!bytes) return state.SkipWithError(("cannot read " + module_file).c_str());
  auto once = wasm::decode_module(*bytes, module_file);
  if (!once) return state.SkipWithError(once.error().describe().c_str());
  size_t wasm_bytes = 0, machine_bytes = 0, kept_bytes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto arena = std::move(*CodeArena::create());
    std::vector<std::unique_ptr<CodeVersion>> versions;
    state.ResumeTiming();
    auto module = decode_too ? wasm::decode_module(*bytes, module_file) : once;
    for (uint32_t f = (*module)->imported_functions; f < (*module)->function_count(); ++f) {
      auto version = compile_baseline(**module, FuncIndex(f), {}, *arena);
      if (!version) return state.SkipWithError(version.error().describe().c_str());
      versions.push_back(std::move(*version));
    }
    state.PauseTiming();
    wasm_bytes += code_bytes(**module);
    for (const auto& version : versions) {
      machine_bytes += version->code_size.value;
      kept_bytes += version->code_size.value + sizeof(CodeVersion) + version->pc_map.heap_bytes();
    }
    versions.clear();  // before the arena
    arena.reset();
    module = once;  // taking down is not compiling
    state.ResumeTiming();
  }
  state.SetBytesProcessed(static_cast<int64_t>(wasm_bytes));
  state.counters["code_per_byte"] = static_cast<double>(machine_bytes) / static_cast<double>(wasm_bytes);
  state.counters["memory_per_byte"] = static_cast<double>(kept_bytes) / static_cast<double>(wasm_bytes);
}
BENCHMARK_CAPTURE(compile_all, baseline, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile_all, decode_validate_and_baseline, true)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hindsight::jit

int main(int argc, char** argv) {
  const auto take = [&](const std::string& option) -> const char* {
    for (int i = 1; i < argc; ++i)
      if (std::string(argv[i]).starts_with(option)) {
        const char* const value = argv[i] + option.size();
        std::rotate(argv + i, argv + i + 1, argv + argc);
        --argc;
        return value;
      }
    return nullptr;
  };
  if (const char* file = take("--module=")) hindsight::jit::module_file = file;
  if (const char* bytes = take("--bytes=")) hindsight::jit::wanted_bytes = std::strtoull(bytes, nullptr, 10);
  if (const char* file = take("--write=")) {
    const auto module = hindsight::jit::read_module();
    std::ofstream out(file, std::ios::binary);
    if (module)
      out.write(reinterpret_cast<const char*>(module->data()), static_cast<std::streamsize>(module->size()));
    return module && out ? 0 : 1;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
