// What the produced code looks like: vectors, positions, determinism.
#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "jit/wasm/instr_reader.h"
#include "tests/jit/optimizing/hinted.h"

namespace hindsight::jit::testing {
namespace {

// Scalar wasm as clang writes it.
constexpr const char* kLoops = R"((module (memory 16)
  (func (export "axpy") (param $a f32) (param $x i32) (param $y i32) (param $n i32) (local $i i32)
    (block $out (br_if $out (i32.eqz (local.get $n)))
    (loop $l
      (f32.store (local.get $y) (f32.add (f32.load (local.get $y)) (f32.mul (local.get $a) (f32.load (local.get $x)))))
      (local.set $x (i32.add (local.get $x) (i32.const 4)))
      (local.set $y (i32.add (local.get $y) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))
  (func (export "bytes") (param $p i32) (param $n i32) (result i32) (local $s i32)
    (block $out (br_if $out (i32.eqz (local.get $n)))
    (loop $l
      (local.set $s (i32.add (local.get $s) (i32.load8_u (local.get $p))))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (local.get $s))
  (func (export "row") (param $c i32) (param $b i32) (param $x i32) (param $n i32) (local $i i32)
    (block $out (br_if $out (i32.eqz (local.get $n)))
    (loop $l
      (i32.store (i32.add (local.get $c) (i32.shl (local.get $i) (i32.const 2)))
        (i32.add (i32.load (i32.add (local.get $c) (i32.shl (local.get $i) (i32.const 2))))
          (i32.mul (local.get $x) (i32.load (i32.add (local.get $b) (i32.shl (local.get $i) (i32.const 2)))))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))))))";

TEST(OptimizedCode, AtomicsAreSingleInstructions) {
  constexpr const char* kAtomics = R"((module (memory 1 1 shared)
    (func (export "add") (param i32 i32) (result i32) (i32.atomic.rmw.add offset=8 (local.get 0) (local.get 1)))
    (func (export "count") (param i32 i32) (result i32)
      (drop (i32.atomic.rmw.add offset=8 (local.get 0) (local.get 1))) (local.get 1))
    (func (export "swap") (param i32 i32) (result i32) (i32.atomic.rmw.xchg (local.get 0) (local.get 1)))
    (func (export "store") (param i32 i32) (result i32) (i32.atomic.store (local.get 0) (local.get 1)) (local.get 0))
    (func (export "exchange") (param i32 i32) (result i32)
      (i32.atomic.rmw.cmpxchg (local.get 0) (local.get 1) (i32.const 1)))))";
  OptimizeRequest request;
  request.dump_ir = true;
  const std::pair<const char*, const char*> cases[] = {
      {"add", "xaddl"}, {"count", "addl"}, {"swap", "xchgl"}, {"store", "xchgl"}, {"exchange", "cmpxchgl"}};
  for (const auto& [name, instruction] : cases) {
    Optimized m(kAtomics, request);
    m.compile(name);
    EXPECT_NE(m.dump.find(instruction), std::string::npos) << m.dump;
    EXPECT_EQ(m.dump.find("mfence"), std::string::npos) << name;
  }
}

// What a callee accesses comes after its context. If that came after the loads that lead to it, calls could not overlap.
TEST(OptimizedCode, IndirectCallsOfTheSameInstanceDoNotWaitForTheCalleesContext) {
  constexpr const char* kCall = R"((module (type $f (func (param i32) (result i32))) (table 1 funcref)
    (func (export "f") (param i32 i32) (result i32) (call_indirect (type $f) (local.get 0) (local.get 1)))))";
  OptimizeRequest request;
  request.dump_ir = true;
  Optimized m(kCall, request);
  m.compile("f");
  // A volatile load on a way of its own, which is no select, whatever LLVM knows of the two being equal.
  EXPECT_NE(m.dump.find("phi ptr [ %vmctx, %"), std::string::npos) << m.dump;
  EXPECT_NE(m.dump.find("context.of.another:"), std::string::npos) << m.dump;
  EXPECT_EQ(m.dump.find("\tcmov"), std::string::npos) << m.dump;
}

uint32_t recorded_calls = 0;
// Changes what it may: r11, vectors and flags.
HINDSIGHT_PRESERVES_MOST void record_call(VmContext* context, const void*, uint32_t, uint64_t, uint32_t) {
  ++recorded_calls;
  context->thread->lwp_values = 0;  // the next one too
  asm volatile(
      "movl $-1, %r11d\n pcmpeqd %xmm0, %xmm0\n pcmpeqd %xmm1, %xmm1\n pcmpeqd %xmm2, %xmm2\n"
      "pcmpeqd %xmm3, %xmm3\n pcmpeqd %xmm4, %xmm4\n pcmpeqd %xmm5, %xmm5\n pcmpeqd %xmm6, %xmm6\n"
      "pcmpeqd %xmm7, %xmm7\n pcmpeqd %xmm8, %xmm8\n pcmpeqd %xmm15, %xmm15\n testl %r11d, %r11d");
}

// Of the functions that are called, arguments are in every register that has any. What comes after the call was there before.
TEST(OptimizedCode, CallsThatAreRecordedKeepTheirArgumentsAndSaveNoRegistersForIt) {
  constexpr const char* kCall = R"((module
    (type $f (func (param i32 i64 i32 i64 i32 f64 f32 f64 f64 i32 i32) (result f64))) (table funcref (elem $f))
    (func $f (type $f)
      (f64.add (f64.convert_i64_s (i64.add (local.get 1) (local.get 3)))
        (f64.add (f64.mul (local.get 5) (local.get 7)) (f64.add (local.get 8) (f64.add (f64.promote_f32 (local.get 6))
          (f64.convert_i32_s (i32.add (i32.add (local.get 0) (i32.mul (local.get 2) (local.get 9))) (i32.sub (local.get 4) (local.get 10)))))))))
    (func (export "f") (param i32 i64 f64) (result f64)
      (f64.add (local.get 2) (call_indirect (type $f) (local.get 0) (local.get 1) (i32.add (local.get 0) (i32.const 1))
        (i64.mul (local.get 1) (i64.const 3)) (i32.const 5) (local.get 2) (f32.demote_f64 (local.get 2))
        (f64.neg (local.get 2)) (f64.add (local.get 2) (f64.const 1)) (i32.mul (local.get 0) (local.get 0)) (local.get 0)
        (i32.sub (local.get 0) (local.get 0)))))
    (func (export "passes_on") (param i32 i32) (result f64)
      (call_indirect (type $g) (local.get 0) (local.get 1))) (type $g (func (param i32) (result f64)))))";
  OptimizeRequest request;
  request.options.lwp_counting = true;
  request.dump_ir = true;
  Optimized m(kCall, request);
  m.instance->builtins().lwp_value_sampled = record_call;
  m.instance->thread().lwp_values = 0;
  recorded_calls = 0;
  // 100 + 300 - 6.25 + 3.5 + 2.5 + (7 + 8 * 49 + 5 - 7), and 2.5
  EXPECT_EQ(m.call("f", {i32(7), i64(100), f64(2.5)}), returns({f64(799.25)}));
  EXPECT_EQ(recorded_calls, 1u);
  m.compile("passes_on");
  EXPECT_EQ(m.dump.find("pushq\t%rbx"), std::string::npos) << m.dump;
  EXPECT_EQ(m.dump.find("pushq\t%r1"), std::string::npos) << m.dump;
}

TEST(OptimizedCode, VectorizedLoopsComputeTheSame) {
  Optimized m(kLoops);
  uint8_t* memory = m.instance->memory();
  for (uint32_t i = 0; i < 65536; ++i) memory[i] = static_cast<uint8_t>(i * 31 + (i >> 8));
  uint32_t sum = 0;
  for (uint32_t i = 3; i < 3 + 10007; ++i) sum += memory[i];
  EXPECT_EQ(m.call("bytes", {i32(3), i32(10007)}), returns({i32(sum)}));
  // Wraps at 4 GiB: the first byte there is out of bounds.
  EXPECT_EQ(m.call("bytes", {i32(0xffffffff), i32(2)}), traps(TrapCode::kMemoryOutOfBounds));
  // Overlapping by one element: y[i] += a * x[i] with y = x + 4 is a recurrence.
  auto* floats = reinterpret_cast<float*>(memory + 131072);
  std::vector<float> expected(101);
  for (uint32_t i = 0; i < 101; ++i) floats[i] = expected[i] = static_cast<float>(i % 5);
  for (uint32_t i = 0; i < 100; ++i) expected[i + 1] += 0.5f * expected[i];
  m.call("axpy", {f32(0.5f), i32(131072), i32(131076), i32(100)});
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), floats));
}

// A row of an edit distance: two choices of the less, by which the next iteration begins.
TEST(OptimizedCode, KeepsConditionalMovesWhereTrialsFindOutAboutBranches) {
  constexpr const char* kRow = R"((module (memory 16)
    (func (export "row") (param $p i32) (param $n i32) (param $left i32) (result i32) (local $a i32)
      (loop $l
        (local.set $left (i32.add (local.get $left) (i32.const 1)))
        (local.set $a (i32.load (local.get $p)))
        (local.set $left (select (local.get $a) (local.get $left) (i32.lt_s (local.get $a) (local.get $left))))
        (local.set $a (i32.load offset=65536 (local.get $p)))
        (local.set $left (select (local.get $a) (local.get $left) (i32.lt_s (local.get $a) (local.get $left))))
        (i32.store offset=131072 (local.get $p) (local.get $left))
        (local.set $p (i32.add (local.get $p) (i32.const 4)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $left))))";
  OptimizeRequest request;
  request.dump_ir = true;
  request.tuning.use_host_features = false;  // a guess by one model of a processor, wherever this runs
  Optimized guessed(kRow, request);
  guessed.compile("row");
  EXPECT_NE(guessed.dump.find("\tjl\t"), std::string::npos) << guessed.dump;
  request.selects_stay = true;
  Optimized kept(kRow, request);
  kept.compile("row");
  EXPECT_EQ(kept.dump.find("\tjl\t"), std::string::npos) << kept.dump;
  EXPECT_NE(kept.dump.find("cmovl"), std::string::npos) << kept.dump;
}

// What is left of a loop that was unrolled by four. Where a loop may have any length, the same body becomes vectors.
TEST(OptimizedCode, MakesNoMaskedVectorsOfLoopsThatHaveAFewIterationsAtMost) {
  const auto counts = [](const std::string& length) {
    return R"((module (memory 16)
      (func (export "count") (param $p i32) (param $n i32) (param $key i32) (result i64) (local $found i64)
        (local.set $n )" +
           length + R"()
        (if (local.get $n) (then
          (loop $l
            (local.set $found (i64.add (local.get $found)
              (i64.extend_i32_u (i32.eq (i32.load (local.get $p)) (local.get $key)))))
            (local.set $p (i32.add (local.get $p) (i32.const 8)))
            (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))
        (local.get $found))))";
  };
  OptimizeRequest request;
  request.dump_ir = true;
  const auto has_vectors = [&](const std::string& length) {
    Optimized m(counts(length).c_str(), request);
    m.compile("count");
    const std::string assembly = m.dump.substr(m.dump.find("\t.text"));
    return assembly.find("%xmm") != std::string::npos || assembly.find("%ymm") != std::string::npos ||
           assembly.find("%zmm") != std::string::npos;
  };
  EXPECT_TRUE(has_vectors("(local.get $n)"));
  EXPECT_FALSE(has_vectors("(i32.and (local.get $n) (i32.const 3))"));
  EXPECT_FALSE(has_vectors("(i32.and (local.get $n) (i32.const 7))"));
}

// A function that only calls. Before it has looked at its stack it reads no more than where the stack ends, and what only its traps
// need it does not read on its way.
TEST(OptimizedCode, ReadsWhatItNeedsOfTheContextAfterTheLookAtTheStackAndWhatTrapsNeedInTheTraps) {
  OptimizeRequest request;
  request.dump_ir = true;
  Optimized m(R"((module (memory 1) (table 4 funcref) (type $t (func (param i32) (result i32)))
    (func (export "both") (param $p i32) (result i32)
      (i32.add (call_indirect (type $t) (i32.load (local.get $p)) (i32.load offset=4 (local.get $p)))
               (call_indirect (type $t) (i32.load offset=8 (local.get $p)) (i32.load offset=12 (local.get $p)))))))",
              request);
  m.compile("both");
  const std::string ir = m.dump.substr(0, m.dump.find("\t.text"));
  size_t block_begin = ir.find("define");
  ASSERT_NE(block_begin, std::string::npos);
  size_t blocks_with_traps = 0;
  bool is_first = true;
  for (size_t end = 0; end != std::string::npos && block_begin != std::string::npos;
       block_begin = end, is_first = false) {
    end = ir.find("\n\n", block_begin + 1);
    const std::string block = ir.substr(block_begin, end - block_begin);
    const auto count = [&](const std::string& what) {
      size_t times = 0;
      for (size_t at = block.find(what); at != std::string::npos; at = block.find(what, at + 1)) ++times;
      return times;
    };
    if (is_first) {
      EXPECT_EQ(count("load ptr"), 1) << block;
    }
    if (count("unreachable") == 0) continue;
    EXPECT_EQ(count("load ptr"), 2)
        << block;  // the table of what the runtime provides, and the trap's entry in it
    ++blocks_with_traps;
  }
  EXPECT_GT(blocks_with_traps, 2) << ir;
}

TEST(OptimizedCode, TheSameRequestGivesTheSameBytes) {
  Optimized m(kLoops);
  const CodeVersion* first = m.compile("axpy");
  std::vector<std::byte> bytes(first->begin(), first->end());
  const CodeVersion* second = m.compile("axpy");
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), second->begin(), second->end()));
}

// LLVM's models of the processor are kept from one compile to the next.
TEST(OptimizedCode, IsTheSameWhateverWasCompiledWithOtherSettingsInBetween) {
  const Optimized m(kLoops);
  const auto code_of = [&](const Tuning& tuning, bool split_cold) {
    OptimizeRequest request = m.request;
    request.function = FuncIndex(m.module->find_export("axpy")->index);
    request.tuning = tuning;
    request.split_cold = split_cold;
    request.dump_ir = true;
    auto result = optimizer().compile(request, *m.arena);
    return result ? std::move(result->dump) : std::string();
  };
  const Tuning usual;
  Tuning plain, unaligned;
  plain.use_host_features = false;
  unaligned.align_loops = false;
  const std::string first = code_of(usual, false), any_host = code_of(plain, false),
                    packed = code_of(unaligned, false);
  ASSERT_FALSE(first.empty());
  EXPECT_NE(first, any_host);
  EXPECT_NE(first, packed);
  code_of(usual, true);
  EXPECT_EQ(code_of(usual, false), first);
  EXPECT_EQ(code_of(plain, false), any_host);
  EXPECT_EQ(code_of(unaligned, false), packed);
}

TEST(OptimizedCode, ThreadsCompileIndependently) {
  Optimized m(kLoops);
  std::vector<std::thread> threads;
  std::array<bool, 4> compiled{};
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      OptimizeRequest request = m.request;
      request.function = FuncIndex(static_cast<uint32_t>(i % 3));
      compiled[i] = optimizer().compile(request, *m.arena).has_value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const bool one : compiled) EXPECT_TRUE(one);
}

TEST(OptimizedCode, EveryInstructionHasARowAndEveryRowAnInstruction) {
  OptimizeRequest request;
  request.osr_loops = {LoopIndex(0)};
  Optimized m(kLoops, request);
  const CodeVersion* version = m.compile("row");
  std::vector<uint32_t> offsets;
  const wasm::FunctionBody& body = m.module->body(version->function);
  wasm::InstrReader reader(*m.module, body);
  wasm::Instr instr;
  offsets.push_back(body.begin.value);
  while (!reader.at_end()) {
    reader.next(instr);
    offsets.push_back(instr.offset.value);
  }
  for (uint32_t pc = 0; pc < version->code_size.value; ++pc) {
    const auto row = version->pc_map.find(CodeOffset(pc));
    ASSERT_TRUE(row) << pc;
    if (row->wasm != kNoWasmOffset) {
      EXPECT_TRUE(std::find(offsets.begin(), offsets.end(), row->wasm.value) != offsets.end())
          << row->wasm.value;
    }
  }
  const auto entry = static_cast<uint32_t>(static_cast<const std::byte*>(version->entry) - version->begin());
  EXPECT_NE(version->pc_map.find(CodeOffset(entry))->wasm, kNoWasmOffset);
}

// Offset in the code of the `which`th instruction with this opcode.
uint32_t nth_of_opcode(const Optimized& m, const CodeVersion& version, wasm::Opcode opcode, int which) {
  wasm::InstrReader reader(*m.module, m.module->body(version.function));
  wasm::Instr instr;
  while (!reader.at_end()) {
    reader.next(instr);
    if (instr.opcode != opcode || which-- > 0) continue;
    for (const PcRow& row : version.pc_map.rows())
      if (row.wasm == instr.offset) return row.code.value;
  }
  ADD_FAILURE() << "no such instruction";
  return 0;
}

TEST(OptimizedCode, ABranchFallsThroughToWhereItsHintSaysItGoes) {
  for (const bool likely : {true, false}) {
    const std::string hint = fmt::format("(@metadata.code.branch_hint \"\\{:02}\")", likely ? 1 : 0);
    Optimized m(R"((module
      (import "h" "a" (func $a (param i32))) (import "h" "b" (func $b (param i32)))
      (func (export "if") (param i32)
        local.get 0 )" +
                hint + R"( if local.get 0 call $a else i32.const 5 call $b end)
      (func (export "br_if") (param i32)
        block local.get 0 )" +
                hint + R"( br_if 0 i32.const 6 call $b return end local.get 0 call $a)))");
    for (const char* name : {"if", "br_if"}) {
      const CodeVersion* version = m.compile(name);
      ASSERT_NE(version, nullptr);
      const bool branch = std::string_view(name) == "br_if";
      const uint32_t holds = nth_of_opcode(m, *version, wasm::Opcode::kCall, branch ? 1 : 0);
      const uint32_t fails = nth_of_opcode(m, *version, wasm::Opcode::kCall, branch ? 0 : 1);
      EXPECT_EQ(holds < fails, likely) << name;
    }
  }
}

TEST(OptimizedCode, TrapsAreAtTheirInstruction) {
  Optimized m(R"((module (memory 1)
    (func $inner (param i32 i32) (result i32) (i32.div_u (local.get 0) (local.get 1)))
    (func (export "f") (param i32 i32) (result i32)
      (if (result i32) (local.get 0)
        (then (call $inner (local.get 0) (local.get 1)))
        (else (i32.rem_u (i32.const 7) (local.get 1)))))
    (func (export "load") (param i32) (result i32) (i32.add (i32.load (local.get 0)) (i32.const 1)))))");
  const auto position = [&](const void* pc) -> PcRow {
    for (const auto& version : m.versions) {
      const auto* at = static_cast<const std::byte*>(pc);
      if (at >= version->begin() && at < version->end())
        return *version->pc_map.find(CodeOffset(static_cast<uint32_t>(at - version->begin())));
    }
    ADD_FAILURE() << "not in generated code";
    return {};
  };
  EXPECT_EQ(m.call("f", {i32(1), i32(0)}), traps(TrapCode::kIntegerDivideByZero));
  const auto* pc = static_cast<const std::byte*>(m.instance->trap_pc) - 1;
  PcRow row = position(pc);
  EXPECT_EQ(m.module->bytes[row.wasm.value], 0x6e);  // i32.div_u
  ASSERT_NE(row.inline_site, kNoInlineSite);
  const InlineSite site = m.versions[0]->pc_map.inline_sites()[row.inline_site];
  EXPECT_EQ(m.module->bytes[site.call_site.value], 0x10);  // call
  EXPECT_EQ(m.call("f", {i32(0), i32(0)}), traps(TrapCode::kIntegerDivideByZero));
  row = position(static_cast<const std::byte*>(m.instance->trap_pc) - 1);
  EXPECT_EQ(m.module->bytes[row.wasm.value], 0x70);  // i32.rem_u
  EXPECT_EQ(row.inline_site, kNoInlineSite);
  EXPECT_EQ(m.call("load", {i32(65533)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.module->bytes[position(m.instance->trap_pc).wasm.value], 0x28);  // i32.load
}

TEST(OptimizedCode, PassesAreTimed) {
  Optimized m(kLoops);
  const CodeVersion* version = m.compile("row");
  double sum = 0;
  for (const PassTime& pass : version->pass_times) {
    sum += pass.seconds;
    RecordProperty(pass.name, std::to_string(pass.seconds * 1e3));
    std::printf("  %-12s %.3f ms\n", pass.name.c_str(), pass.seconds * 1e3);
  }
  EXPECT_GE(version->pass_times.size(), 5u);
  EXPECT_LE(sum, version->compile_seconds * 1.01);
}

TEST(OptimizedCode, ImportsCannotBeCompiled) {
  Optimized m(R"((module (import "a" "b" (func))))");
  OptimizeRequest request = m.request;
  const auto result = optimizer().compile(request, *m.arena);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
}

// What an addition leaves in the upper half of a register is what an address is to have there.
TEST(Addresses, ThatALoopCarriesAreExtendedBeforeIt) {
  OptimizeRequest request;
  request.dump_ir = true;
  Optimized m(R"((module (memory 1)
    (func (export "hash") (param $p i32) (param $end i32) (result i32) (local $h i32)
      (loop $next
        (local.set $h (i32.mul (i32.xor (local.get $h) (i32.load (local.get $p))) (i32.const 16777619)))
        (br_if $next (i32.ne (local.tee $p (i32.add (local.get $p) (i32.const 4))) (local.get $end))))
      (local.get $h))))",
              request);
  ASSERT_NE(m.compile("hash"), nullptr);
  const size_t load = m.dump.find("xorl\t(%");
  ASSERT_NE(load, std::string::npos) << m.dump;
  const size_t begin = m.dump.rfind(".LBB", load), end = m.dump.find("\tj", load);
  EXPECT_EQ(m.dump.substr(begin, end - begin).find("movl"), std::string::npos)
      << m.dump.substr(begin, end - begin);
  EXPECT_EQ(m.call("hash", {i32(0), i32(65536)}).trap, TrapCode::kNone);
  EXPECT_EQ(m.call("hash", {i32(65532), i32(0)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("hash", {i32(0u - 4), i32(8)}), traps(TrapCode::kMemoryOutOfBounds));
}

// Whoever has code without them is spared code generation for changes that cannot be.
TEST(Changes, OfWhichNoneIsPossibleNeedNoCodeWhereNothingElseIsAskedFor) {
  Optimized m(R"((module (memory 1)
    (func (export "walk") (param $p i32) (param $n i32) (result i32)
      (loop $l
        (local.set $p (i32.load (local.get $p)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $p))
    (func (export "gather") (param $i i32) (result i32) (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (i32.load (i32.load (local.get $i)))))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 65536))))
      (local.get $sum))))");
  m.request.only_with_changes = true;
  m.request.changes = {change(ChangeKind::kPrefetch, load_of(*m.module, "walk", 0), 0.5)};
  const CodeVersion* const refused = m.compile("walk");
  ASSERT_NE(refused, nullptr);
  EXPECT_FALSE(refused->memory) << "no code";
  EXPECT_EQ(refused->entry, nullptr);
  EXPECT_GT(refused->compile_seconds, 0);
  ASSERT_EQ(refused->answers.size(), 1u);
  EXPECT_FALSE(refused->answers[0].is_applied());
  EXPECT_FALSE(refused->answers[0].why.empty());
  for (const PassTime& pass : refused->pass_times) EXPECT_NE(pass.name, "codegen");

  m.request.changes = {change(ChangeKind::kPrefetch, load_of(*m.module, "gather", 1), 0.5)};
  const CodeVersion* const applied = m.compile("gather");
  ASSERT_NE(applied, nullptr);
  EXPECT_TRUE(applied->memory);
  EXPECT_NE(applied->entry, nullptr);
  EXPECT_TRUE(applied->answers.at(0).is_applied()) << applied->answers[0].why;
}

}  // namespace
}  // namespace hindsight::jit::testing
