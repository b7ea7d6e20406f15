// A function compiled with word of what its operands usually are, or of how often its loops go round, and without.
// Nobody can tell the two versions of a loop apart but by the clock.
#pragma once

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "jit/wasm/instr_reader.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {

inline constexpr uint32_t kPage = 65536;

// What strip_ended does in these tests: the other version's turn, every time.
inline void take_turns(VmContext*, LoopCell* cell) {
  cell->enabled ^= 1;
  cell->countdown = static_cast<int32_t>(cell->strip_length) - 1;
}

// "f" with each of the operators of that kind hinted at as having this number, and without.
struct UsuallyHinted {
  UsuallyHinted(std::string_view wat, uint64_t value, const std::function<bool(wasm::Opcode)>& is_hinted,
                OptimizeRequest settings = {}, bool osr = false)
      : hinted(wat, settings), plain(wat, settings) {
    wasm::InstrReader reader(*hinted.module,
                             hinted.module->body(FuncIndex(hinted.module->find_export("f")->index)));
    for (wasm::Instr instr; !reader.at_end();) {
      reader.next(instr);
      if (is_hinted(instr.opcode))
        hinted.request.changes.push_back(
            {.site = {ChangeKind::kValue, instr.offset}, .what = UsualValue{.value = value, .share = 0.9}});
    }
    if (osr) hinted.request.osr_loops = {LoopIndex(0)};
    version = hinted.compile("f");
    func_refs(hinted.instance->context())[hinted.module->find_export("f")->index].code = version->entry;
    hinted.instance->builtins().strip_ended = take_turns;
    for (const auto& cell : version->loop_cells) {
      cell->strip_length = 64;
      cell->countdown = 63;
    }
  }
  static uint8_t* bytes(Optimized& of) { return reinterpret_cast<uint8_t*>(of.instance->memory()); }
  void fill_random(uint32_t seed) {
    std::mt19937 random(seed);
    for (uint32_t i = 0; i < kPage; ++i) bytes(hinted)[i] = static_cast<uint8_t>(random());
    std::memcpy(bytes(plain), bytes(hinted), kPage);
  }
  void set_word(uint32_t at, uint32_t word) {
    for (Optimized* of : {&hinted, &plain}) std::memcpy(bytes(*of) + at, &word, sizeof word);
  }
  // Beginning with either version, and in strips of both.
  void expect_same(const std::vector<Value>& args, const std::string& what = {}) {
    const std::vector<uint8_t> before(bytes(hinted), bytes(hinted) + kPage);
    const Outcome expected = plain.call("f", args);
    for (const uint32_t first : {1u, 0u}) {
      std::memcpy(bytes(hinted), before.data(), before.size());
      for (const auto& cell : version->loop_cells) cell->enabled = first;
      EXPECT_EQ(hinted.call("f", args), expected) << what << " beginning with " << first;
      EXPECT_EQ(std::memcmp(bytes(plain), bytes(hinted), kPage), 0) << what << " beginning with " << first;
    }
  }

  Optimized hinted, plain;
  const CodeVersion* version = nullptr;
};

}  // namespace hindsight::jit::testing
