// Nests: one loop of a function as a function of its own, called with handmade frames. What it leaves in the frame and the number that it
// returns are what the caller goes on with.
#include <algorithm>
#include <array>
#include <csetjmp>

#include "jit/abi/nest_exits.h"
#include "jit/baseline/baseline_compiler.h"
#include "tests/jit/optimizing/hinted.h"
#include "tests/jit/optimizing/three_loops.h"

namespace hindsight::jit::testing {
namespace {

constexpr uint64_t kDirty = 0xfeedbeef00000000;
constexpr uint64_t kCanary = 0xc0ffee00badbad00;

struct alignas(16) Frame {
  Frame(std::initializer_list<uint64_t> first) {
    words.fill(kCanary);
    std::ranges::copy(first, words.begin());
  }
  uint64_t& operator[](size_t slot) { return words[slot]; }
  // What is in the first slots, and nothing in the others.
  void expect(std::initializer_list<uint64_t> first, const char* what = "") const {
    size_t slot = 0;
    for (const uint64_t word : first) {
      EXPECT_EQ(words[slot], word) << what << " slot " << slot;
      ++slot;
    }
    for (; slot < words.size(); ++slot) EXPECT_EQ(words[slot], kCanary) << what << " slot " << slot;
  }
  std::array<uint64_t, 32> words;
};

// How a 32-bit value is stored over what was there.
uint64_t over(uint64_t before, uint32_t value) {
  return (before & 0xffffffff00000000) | value;
}

// The nest of one loop of "f".
struct Nest {
  Nest(std::string_view wat, uint32_t root, OptimizeRequest settings = {}, TestInstance::Options options = {})
      : m(wat, {}, std::move(options)), nest_request(std::move(settings)) {
    compile(root);
  }
  void compile(uint32_t root) {
    nest_request.nest = LoopIndex(root);
    OptimizeRequest whole = std::exchange(m.request, nest_request);
    m.request.module = m.module;
    version = m.compile("f");
    m.request = std::move(whole);
    ASSERT_NE(version, nullptr);
    ASSERT_EQ(version->osr_entries.size(), 1u);
    EXPECT_EQ(version->osr_entries[0].kind, OsrEntry::Kind::kNest);
    EXPECT_EQ(version->osr_entries[0].loop, LoopIndex(root));
    EXPECT_EQ(version->nest, LoopIndex(root));
    EXPECT_EQ(version->entry, nullptr);
  }
  const void* code() const { return version->osr_entries.at(0).code; }
  uint32_t run(Frame& frame) {
    const auto nest = reinterpret_cast<uint32_t (*)(VmContext*, uint64_t*)>(const_cast<void*>(code()));
    return nest(m.instance->context(), frame.words.data());
  }
  const wasm::LoopInfo& loop() const { return m.module->body(version->function).loops[version->nest->value]; }
  // The number of the label of the frame that is so far out.
  uint32_t label(uint32_t level) const {
    EXPECT_TRUE(loop().targets >> level & 1) << "no branch goes there";
    return nest_label(loop().targets, level);
  }
  // The wasm position of an address in the nest.
  PcRow position(const void* pc) const {
    const auto* at = static_cast<const std::byte*>(pc);
    EXPECT_TRUE(at >= version->begin() && at < version->end());
    return *version->pc_map.find(CodeOffset(static_cast<uint32_t>(at - version->begin())));
  }
  Optimized m;
  OptimizeRequest nest_request;
  const CodeVersion* version = nullptr;
};

// How the nest of a loop of kThreeLoops is left: the level of the branch, 0 at its end, and r.
struct Left {
  uint32_t level, r;
};
Left leave(uint32_t root, uint32_t n, uint32_t i, uint32_t j, uint32_t k, uint32_t r) {
  constexpr uint32_t kAll[] = {1, 3, 4};  // levels from each root
  bool in_b = root >= 1, in_c = root >= 2;
  for (;;) {
    if (!in_b) j = 0;
    for (;;) {
      if (!in_c) k = 0;
      do {
        r = r * 3 + i * 16 + j * 4 + k;
        if (r == 123456) return {kAll[root], r};
        ++k;
      } while (k < n);
      if (root == 2) return {0, r};
      in_c = false;
      ++j;
      if (j == 2 && i == 1) {
        if (root == 1) return {1, r};
        break;
      }
      if (j >= n) {
        if (root == 1) return {0, r};
        break;
      }
    }
    in_b = false;
    if (++i >= n) return {0, r};
  }
}

TEST(Nests, OfEveryLevelLeaveWhatIsReadAgainAndSayWhere) {
  for (uint32_t root = 0; root < 3; ++root) {
    Nest nest(kThreeLoops, root);
    for (uint32_t ijk = 0; ijk < 64; ++ijk) {
      const uint32_t i = ijk / 16, j = ijk / 4 % 4, k = ijk % 4;
      // The second r makes the sum that leaves all loops at once: a third of it.
      const uint32_t sum = root == 0 ? i * 16 : root == 1 ? i * 16 + j * 4 : i * 16 + j * 4 + k;
      for (const uint32_t r : {99u, (123456 - sum) * 0xaaaaaaab}) {
        // Locals n i j k r, then the operands: 1000, and at $b its parameter.
        Frame frame{kDirty | 4, kDirty | i, kDirty | j, kDirty | k, kDirty | r, kDirty | 1000, kDirty | 5};
        const Frame before = frame;
        const Left left = leave(root, 4, i, j, k, r);
        EXPECT_EQ(nest.run(frame), left.level == 0 ? kNestEnded : nest.label(left.level));
        Frame expected = before;
        expected[4] = over(before.words[4], left.r);
        EXPECT_EQ(frame.words, expected.words) << "root " << root << " at " << i << j << k;
      }
    }
  }
}

// Locals way 0, x 1, count 2, d 3; operands from slot 4 on.
constexpr const char* kWays = R"((module (func (export "f") (param $way i32) (param $x i64) (result i64 f64)
  (local $count i32) (local $d f64)
  (i64.const 7)
  (block $pair (result i64 f32)
    (i32.const 3)
    (loop $again (param i32) (result i32)
      (loop $root (param i32) (result i32)
        (local.set $count)
        (local.set $x (i64.add (local.get $x) (i64.const 5)))
        (if (i32.eq (local.get $way) (i32.const 1)) (then (br $pair (local.get $x) (f32.const 1.5))))
        (if (i32.eq (local.get $way) (i32.const 2)) (then (br $again (i32.const 44))))
        (if (i32.eq (local.get $way) (i32.const 3)) (then (return (local.get $x) (f64.const 2.5))))
        (local.set $count (i32.add (local.get $count) (i32.const 1)))
        (br_if $root (local.get $count) (i32.lt_u (local.get $count) (i32.const 10)))))
    (i64.extend_i32_u) (f32.const 9))
  (local.set $d (f64.promote_f32))
  (i64.add) (i64.add (local.get $x))
  (local.get $d))))";

TEST(Nests, LeaveTheValuesOfTheBranchAtItsLabel) {
  Nest nest(kWays, 1);
  const auto frame = [](uint64_t way) { return Frame{kDirty | way, 100, kDirty | 1, 77, 7, kDirty | 3}; };
  Frame ends = frame(0);
  EXPECT_EQ(nest.run(ends), kNestEnded);
  ends.expect({kDirty | 0, 135, kDirty | 1, 77, 7, kDirty | 10}, "end");
  Frame pair = frame(1);
  EXPECT_EQ(nest.run(pair), nest.label(2));
  pair.expect({kDirty | 1, 105, kDirty | 1, 77, 7, 105, over(kCanary, std::bit_cast<uint32_t>(1.5f))},
              "block");
  Frame again = frame(2);
  EXPECT_EQ(nest.run(again), nest.label(1));
  again.expect({kDirty | 2, 105, kDirty | 1, 77, 7, kDirty | 44}, "loop");
  Frame returned = frame(3);
  EXPECT_EQ(nest.run(returned), nest.label(3));
  // What was below the results is over, and no local is read again.
  returned.expect({kDirty | 3, 100, kDirty | 1, 77, 105, std::bit_cast<uint64_t>(2.5)}, "return");
}

TEST(Nests, LeaveByTablesAndByNullReferences) {
  Nest nest(R"((module (func (export "f") (param $t i32) (param $r externref) (result i32) (local $n i32)
    (block $a (block $b (block $c
      (loop $root
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (block $in (br_table $in $a $b $in $c (local.get $t)))
        (drop (br_on_null $b (local.get $r)))
        (br_if $root (i32.lt_u (local.get $n) (i32.const 5)))
        (return (i32.const 9)))
      (unreachable))
      (return (i32.const 3)))
      (return (local.get $n)))
    (i32.const 1))))",
            0);
  struct Case {
    uint64_t t, reference;
    uint32_t level;
    uint64_t n, fourth;  // slots afterwards; the fourth is the result of a return
  };
  const uint64_t nine = over(kCanary, 9);
  for (const Case& c : {Case{0, 1, 4, kDirty, nine},
                        {0, 0, 2, kDirty | 1, kCanary},
                        {1, 1, 3, kDirty, kCanary},
                        {2, 1, 2, kDirty | 1, kCanary},
                        {3, 1, 4, kDirty, nine},
                        {8, 1, 1, kDirty, kCanary}}) {
    Frame frame{kDirty | c.t, c.reference, kDirty};
    EXPECT_EQ(nest.run(frame), nest.label(c.level)) << c.t;
    frame.expect({kDirty | c.t, c.reference, c.n, c.fourth});
  }
}

TEST(Nests, InTheArmsOfAnIfLeaveThroughItsEnd) {
  constexpr const char* kArms = R"((module (func (export "f") (param i32) (result i32)
    (if $if (result i32) (local.get 0)
      (then (loop $t (result i32) (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
              (br_if $if (i32.const 30) (i32.eq (local.get 0) (i32.const 7)))
              (drop) (br_if $t (local.get 0)) i32.const 10))
      (else (loop $e (result i32) (local.set 0 (i32.add (local.get 0) (i32.const 1)))
              (br_if $if (i32.const 40) (i32.eq (local.get 0) (i32.const 7)))
              (drop) (br_if $e (i32.lt_u (local.get 0) (i32.const 5))) i32.const 20)))
    local.get 0 i32.add)))";
  const auto run = [](uint32_t root, uint32_t from, bool branches, uint32_t local, uint32_t result) {
    Nest nest(kArms, root);
    Frame frame{from};
    EXPECT_EQ(nest.run(frame), branches ? nest.label(1) : kNestEnded);
    frame.expect({local, over(kCanary, result)});
  };
  run(0, 3, false, 0, 10);
  run(0, 9, true, 7, 30);
  run(1, 3, false, 5, 20);
  run(1, 6, true, 7, 40);
}

TEST(Nests, WriteWhatALaterIterationAroundThemReads) {
  Nest nest(
      R"((module (func (export "f") (param $n i32) (result i32) (local $seen i32) (local $k i32) (local $last i32)
    (loop $outer
      (local.set $last (local.get $seen))
      (loop $inner
        (local.set $seen (i32.add (local.get $seen) (i32.const 2)))
        (br_if $inner (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (local.set $k (i32.const 3))
      (br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $last))))",
      1);
  Frame frame{1, 10, 5, 0};
  EXPECT_EQ(nest.run(frame), kNestEnded);
  frame.expect({1, 20, 5, 0});  // $k is written before it is read
}

TEST(Nests, HaveNoCodeForWhatDeadCodeBranchesTo) {
  Nest nest(R"((module (func (export "f") (param i32)
    (block $never
      (loop $l
        (block $on (br $on) (br $never))
        (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))))",
            0);
  Frame frame{3};
  EXPECT_EQ(nest.run(frame), kNestEnded);
  frame.expect({3});  // nobody reads it
}

TEST(Nests, LoadNoLocalThatTheyDoNotName) {
  std::string wat = R"((module (func (export "f") (param $n i32) (result i32) (local )";
  for (int i = 0; i < 1000; ++i) wat += "i32 ";
  wat += R"()
    (loop $l (local.set 900 (i32.add (local.get 900) (local.get 500)))
             (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.add (local.get 900) (local.get 1)))))";
  OptimizeRequest request;
  request.dump_ir = true;
  Nest nest(wat, 0, request);
  size_t loads = 0;
  for (size_t at = 0; (at = nest.m.dump.find("= load i32", at)) != std::string::npos; ++at) ++loads;
  EXPECT_EQ(loads, 3u) << nest.m.dump;
  std::vector<uint64_t> frame(1001, kCanary);
  frame[0] = 4, frame[900] = 1, frame[500] = 10;
  const auto code = reinterpret_cast<uint32_t (*)(VmContext*, uint64_t*)>(const_cast<void*>(nest.code()));
  EXPECT_EQ(code(nest.m.instance->context(), frame.data()), kNestEnded);
  EXPECT_EQ(frame[900], 41u);
  EXPECT_EQ(std::ranges::count(frame, kCanary), 1001 - 3);
}

TEST(Nests, OfFunctionsThatAreTooLargeAreCompiled) {
  std::string wat = R"((module (func (export "f") (param $n i32) (result i32) (local $sum i32) )";
  for (int i = 0; i < 600'000; ++i) wat += "nop ";
  wat += R"((loop $l (local.set $sum (i32.add (local.get $sum) (local.get $n)))
                     (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))))";
  Nest nest(wat, 0);
  OptimizeRequest whole;
  whole.module = nest.m.module;
  whole.function = nest.version->function;
  const auto refused = optimizer().compile(whole, *nest.m.arena);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kResource);
  Frame frame{4, 0};
  EXPECT_EQ(nest.run(frame), kNestEnded);
  frame.expect({4, 10});
}

TEST(Nests, CallOthersTheirOwnFunctionAndTables) {
  std::vector<uint32_t> told;
  Nest nest(
      R"((module (import "host" "tell" (func $tell (param i32))) (type $unary (func (param i32) (result i32)))
    (table funcref (elem $twice $f))
    (func $twice (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
    (func $long (param i32) (result i32)
      nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop
      nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop
      nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop nop
      (loop $l (br_if $l (local.tee 0 (i32.shr_u (local.get 0) (i32.const 1)))))
      (if (i32.eq (global.get $g) (i32.const 7)) (then (global.set $g (i32.const 8)))) (global.get $g))
    (global $g (mut i32) (i32.const 3))
    (func $f (export "f") (param $n i32) (result i32) (local $sum i32)
      (if (local.get $n) (then
      (loop $l
        (call $tell (local.get $n))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (local.set $sum (i32.add (local.get $sum) (call $twice (local.get $n))))
        (local.set $sum (i32.add (local.get $sum) (call $long (local.get $n))))
        (local.set $sum (i32.add (local.get $sum) (call $f (local.get $n))))
        (local.set $sum (i32.add (local.get $sum) (call_indirect (type $unary) (local.get $n) (i32.const 1))))
        (br_if $l (local.get $n)))))
      (local.get $sum))))",
      0, {}, {.host = {{"host.tell", [&](TestInstance&, uint64_t* slots) {
                          told.push_back(static_cast<uint32_t>(slots[0]));
                          return true;
                        }}}});
  EXPECT_EQ(nest.version->inlined, std::vector{FuncIndex(1)});
  const std::function<uint32_t(uint32_t)> f = [&](uint32_t n) {
    uint32_t sum = 0;
    while (n != 0) {
      --n;
      sum += 2 * n + 3 + 2 * f(n);
    }
    return sum;
  };
  Frame frame{3, 0};
  EXPECT_EQ(nest.run(frame), kNestEnded);
  frame.expect({3, f(3)});
  EXPECT_EQ(told.size(), 3 + 2 * (4 + 1));
}

// Frames of calls out of a function with tail calls have another type than a nest's.
TEST(Nests, OfFunctionsWithTailCallsElsewhereAreFunctionsLikeOthers) {
  Nest nest(R"((module (func $f (export "f") (param $n i32) (param $sum i32) (result i32)
      (loop $l (local.set $sum (i32.add (local.get $sum) (call $last (local.get $n) (i32.const 1))))
               (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (return_call $last (local.get $sum) (local.get $n)))
    (func $last (param i32 i32) (result i32)
      (if (i32.eq (local.get 0) (i32.const 77)) (then (return_call $f (i32.const 1) (i32.const 1))))
      (i32.add (local.get 0) (local.get 1)))))",
            0);
  Frame frame{3, 100};
  EXPECT_EQ(nest.run(frame), kNestEnded);
  frame.expect({0, 109});
}

// Baseline code takes what its slot leads to for a remainder unless it is tagged. That makes no difference to what never comes back.
struct Running {
  explicit Running(std::string_view wat) : nest(wat, 0) {
    auto made = compile_baseline(*nest.m.module, nest.version->function, {}, *nest.m.arena);
    EXPECT_TRUE(made);
    baseline = std::move(*made);
    baseline->osr_slots[0].store(nest.code());
    func_refs(nest.m.instance->context())[nest.version->function.value].code = baseline->entry;
  }
  Nest nest;
  std::unique_ptr<CodeVersion> baseline;
};

TEST(Nests, TrapAtTheirInstruction) {
  Running r(R"((module (memory 1)
    (func $inner (param i32 i32) (result i32) (i32.div_u (local.get 0) (local.get 1)))
    (func (export "f") (param $p i32) (param $d i32) (result i32) (local $sum i32)
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (call $inner (i32.load (local.get $p)) (local.get $d))))
        (local.set $p (i32.add (local.get $p) (i32.const 4)))
        (br_if $l (local.get $p)))
      (local.get $sum))))");
  EXPECT_EQ(r.nest.m.call("f", {i32(65536 - 40), i32(1)}), traps(TrapCode::kMemoryOutOfBounds));
  const PcRow load = r.nest.position(r.nest.m.instance->trap_pc);
  EXPECT_EQ(r.nest.m.module->bytes[load.wasm.value], 0x28);
  EXPECT_EQ(load.inline_site, kNoInlineSite);
  EXPECT_EQ(r.nest.m.call("f", {i32(0), i32(0)}), traps(TrapCode::kIntegerDivideByZero));
  const PcRow division = r.nest.position(static_cast<const std::byte*>(r.nest.m.instance->trap_pc) - 1);
  EXPECT_EQ(r.nest.m.module->bytes[division.wasm.value], 0x6e);
  ASSERT_NE(division.inline_site, kNoInlineSite);
  const InlineSite site = r.nest.version->pc_map.inline_sites()[division.inline_site];
  EXPECT_EQ(r.nest.m.module->bytes[site.call_site.value], 0x10);
  EXPECT_GT(site.call_site, r.nest.loop().offset);
}

TEST(Nests, LookAtTheStackAsTheyBegin) {
  Nest nest(R"((module (func (export "f") (param $n i32) (result i32)
      (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $n))))",
            0);
  TestInstance& instance = *nest.m.instance;
  std::jmp_buf out;  // as a trap leaves the guest, whatever frames of it are left behind
  instance.on_stack_check = [&] { std::longjmp(out, 1); };
  instance.thread().stack_limit = ~uint64_t{0};  // as another thread does that wants an interruption
  Frame frame{7};
  if (setjmp(out) == 0) ADD_FAILURE() << "ended with " << nest.run(frame);
  frame.expect({7});
  EXPECT_EQ(nest.position(static_cast<const std::byte*>(instance.trap_pc) - 1).wasm, nest.loop().offset);
  instance.thread().stack_limit = 0;
  EXPECT_EQ(nest.run(frame), kNestEnded);
  frame.expect({0});
  // Samples and backtraces see the nest's own positions and nothing of the function around it.
  for (const PcRow& row : nest.version->pc_map.rows()) {
    if (row.wasm == kNoWasmOffset) continue;
    EXPECT_GE(row.wasm, nest.loop().offset);
    EXPECT_LE(row.wasm, nest.loop().end);
  }
}

TEST(Nests, SeeMemoryGrow) {
  Nest nest(R"((module (memory 1 10) (func (export "f") (param $n i32) (result i32) (local $sum i32)
    (loop $l
      (drop (memory.grow (i32.const 1)))
      (i32.store (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 4)) (local.get $n))
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 4)))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.add (local.get $sum) (local.get $n)))))",
            0);
  Frame frame{4, 0};
  EXPECT_EQ(nest.run(frame), kNestEnded);
  frame.expect({0, 10});
  EXPECT_EQ(nest.m.instance->memory_record().byte_length, 5 * 65536u);
}

TEST(Nests, WithVectorsHaveSlotsOfSixteenBytes) {
  Nest nest(R"((module (func (export "f") (param $n i32) (result v128) (local $v v128)
    (i32.const 8)
    (block $out (result v128)
      (loop $l
        (local.set $v (i32x4.add (local.get $v) (i32x4.splat (local.get $n))))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))
        (br $out (i64x2.splat (i64.const 3))))
      (unreachable))
    (i32x4.add (local.get $v)) (local.set $v) (drop) (local.get $v))))",
            0);
  Frame frame{3, kCanary, 1, 2, 8};
  EXPECT_EQ(nest.run(frame), nest.label(1));
  frame.expect({3, kCanary, uint64_t{6} << 32 | 7, uint64_t{6} << 32 | 8, 8, kCanary, 3, 3});
}

TEST(Nests, GetPrefetches) {
  Nest nest(
      R"((module (memory 4) (func (export "f") (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum))))",
      0);
  nest.nest_request.changes = {change(ChangeKind::kPrefetch, load_of(*nest.m.module, "f", 1), 0.5)};
  nest.compile(0);
  ASSERT_EQ(nest.version->answers.size(), 1u);
  ASSERT_TRUE(nest.version->answers[0].is_applied()) << nest.version->answers[0].why;
  ASSERT_EQ(nest.version->loop_cells.size(), 1u);
  auto* words = reinterpret_cast<uint32_t*>(nest.m.instance->memory());
  uint32_t expected = 5;
  for (uint32_t i = 0; i < 16384; ++i) words[i] = (i * 7919) % 1024, words[16384 + i] = i * 3 + 1;
  for (uint32_t i = 0; i < 5000; ++i) expected += ((i * 7919) % 1024) * 3 + 1;
  for (const uint32_t distance : {8u, 1u << 29}) {
    nest.version->loop_cells[0]->distance = distance;
    Frame frame{5000, 0, 5};
    EXPECT_EQ(nest.run(frame), kNestEnded);
    frame.expect({5000, 0, expected});
  }
  EXPECT_GT(nest.m.instance->strips_ended, 0u);
}

TEST(Nests, TakeOneOfBothVersionsOfTheirLoops) {
  Nest nest(R"((module (func (export "f") (param $n i32) (param $d i32) (result i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.div_u (i32.mul (local.get $n) (i32.const 100)) (local.get $d))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))))",
            0);
  WasmOffset division;
  wasm::InstrReader reader(*nest.m.module, nest.m.module->body(nest.version->function));
  for (wasm::Instr instr; !reader.at_end();) {
    reader.next(instr);
    if (instr.opcode == wasm::Opcode::kI32DivU) division = instr.offset;
  }
  nest.nest_request.changes = {
      {.site = {ChangeKind::kValue, division}, .what = UsualValue{.value = 10, .share = 0.9}}};
  nest.compile(0);
  ASSERT_TRUE(nest.version->answers.at(0).is_applied()) << nest.version->answers[0].why;
  for (const uint32_t d : {10u, 3u}) {
    Frame frame{30, d, 1};
    uint32_t expected = 1;
    for (uint32_t n = 30; n > 0; --n) expected += n * 100 / d;
    EXPECT_EQ(nest.run(frame), kNestEnded);
    frame.expect({30, d, expected});
  }
}

// Whoever changes the word has changed the slot that leads here: the caller looks there next.
TEST(Nests, AreLeftAtTheirHeaderForOtherCode) {
  constexpr const char* kRounds = R"((module (import "host" "round" (func $round (param i32) (result i32)))
    (func (export "f") (param $n i32) (result i32) (local $i i32) (local $gone i32) (local $r i32)
      i32.const 1000
      i32.const 1
      (loop $rounds (param i32)
        (local.set $r (i32.add (local.get $r)))
        (local.set $gone (i32.mul (local.get $i) (i32.const 3)))
        (local.set $r (i32.add (local.get $r) (local.get $gone)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $rounds (local.get $i) (call $round (local.get $i)))
        (drop))
      (i32.add (local.get $r)))))";
  std::function<void(uint32_t)> at_round;
  OptimizeRequest request;
  request.loop_exits = true;
  Nest nest(kRounds, 0, request, {.host = {{"host.round", [&](TestInstance&, uint64_t* slots) {
                                              const auto i = static_cast<uint32_t>(slots[0]);
                                              if (at_round) at_round(i);
                                              slots[0] = i < 100;
                                              return true;
                                            }}}});
  ASSERT_EQ(nest.version->osr_exits.size(), 1u);
  EXPECT_EQ(nest.version->osr_exits[0].loop, LoopIndex(0));
  std::atomic<const void*>& slot = *nest.version->osr_exits[0].slot;
  const auto sum = [](uint32_t rounds) {  // before the round begins
    uint32_t r = 0;
    for (uint32_t i = 0; i < rounds; ++i) r += (i == 0 ? 1 : i) + 3 * i;
    return r;
  };
  for (const uint32_t number : {kNestLeft, kNestLeftAfterPoll}) {
    at_round = [&](uint32_t i) {
      if (i == 7) slot.store(nest_leave_word(number));
    };
    Frame frame{100, 0, 5, 0, 1000, 1};
    EXPECT_EQ(nest.run(frame), number);
    // $n is not written, $gone not read before it is written; the operand is the loop's parameter.
    frame.expect({100, 7, 5, sum(7), 1000, 7});
    EXPECT_EQ(nest.run(frame), number) << "as long as the word is there";
    frame.expect({100, 7, 5, sum(7), 1000, 7});
    slot.store(nullptr);
    at_round = nullptr;
    EXPECT_EQ(nest.run(frame), kNestEnded);
    frame.expect({100, 7, 5, sum(100), 1000, 7});
  }
}

TEST(Nests, CountLongIterationsOfTheirLoop) {
  OptimizeRequest request;
  request.loop_exits = true;
  Nest nest(R"((module (memory 1) (func (export "f") (param $n i32) (result i32) (local $i i32) (local $r i32)
    (loop $outer
      (local.set $i (i32.const 64))
      (loop $inner
        (local.set $r (i32.add (i32.rotl (local.get $r) (i32.const 3)) (i32.load (i32.shl (local.get $i) (i32.const 2)))))
        (br_if $inner (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
      (br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $r))))",
            0, request);
  ASSERT_EQ(nest.version->osr_exits.size(), 1u);
  EXPECT_FALSE(nest.version->polls_short_iterations);
  ASSERT_NE(nest.version->work, nullptr);
  Frame frame{100, 0, 0};
  EXPECT_EQ(nest.run(frame), kNestEnded);
  EXPECT_EQ(nest.version->work->done, 100u);
  nest.version->osr_exits[0].slot->store(nest_leave_word(kNestLeft));
  Frame left{100, 0, 0};
  EXPECT_EQ(nest.run(left), kNestLeft);
  EXPECT_LE(nest.version->work->done, 101u);
}

// A counted loop looks between its strips, so that it can still become vectors.
TEST(Nests, OfCountedLoopsAreLeftBetweenStrips) {
  OptimizeRequest request;
  request.loop_exits = true;
  Nest nest(
      R"((module (memory 64) (func (export "f") (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.shl (local.get $i) (i32.const 2)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (i32.add (local.get $sum) (local.get $i)))))",
      0, request);
  ASSERT_EQ(nest.version->osr_exits.size(), 1u);
  auto* words = reinterpret_cast<uint32_t*>(nest.m.instance->memory());
  for (uint32_t i = 0; i < 1'000'000; ++i) words[i] = i;
  std::atomic<const void*>& slot = *nest.version->osr_exits[0].slot;
  slot.store(nest_leave_word(kNestLeftAfterPoll));
  Frame frame{1'000'000, 0, 0};
  EXPECT_EQ(nest.run(frame), kNestLeftAfterPoll);
  const uint32_t done = static_cast<uint32_t>(frame[1]);
  EXPECT_LT(done, 1'000'000u);
  slot.store(nullptr);
  EXPECT_EQ(nest.run(frame), kNestEnded);
  frame.expect({1'000'000, 1'000'000, static_cast<uint32_t>(uint64_t{1'000'000} * 999'999 / 2)});
  ASSERT_NE(nest.version->work, nullptr);
  EXPECT_EQ(nest.version->work->done, 1'000'000u) << "iterations, and not strips";
}

// LLVM finds no count of a loop that steps to zero by more than one: it may pass zero and go on. Between strips it is left all the
// same, and becomes the vectors that it is without a way out.
TEST(Nests, ThatStepToZeroAreVectorsWithAWayOutAsWithout) {
  constexpr const char* kStencil =
      R"((module (memory 64) (func (export "f") (param $at i32) (param $from i32) (param $to i32)
    (loop $l
      (f32.store (i32.add (local.get $to) (local.get $at))
        (f32.add (f32.load (i32.add (local.get $from) (local.get $at)))
                 (f32.load offset=4 (i32.add (local.get $from) (local.get $at)))))
      (br_if $l (local.tee $at (i32.add (local.get $at) (i32.const 4))))))))";
  OptimizeRequest request;
  request.dump_ir = true;
  Nest plain(kStencil, 0, request);
  const auto has_vectors = [](const Nest& nest) {
    return nest.m.dump.find(" x float>") != std::string::npos;
  };
  EXPECT_TRUE(has_vectors(plain)) << plain.m.dump;
  request.loop_exits = true;
  Nest nest(kStencil, 0, request);
  ASSERT_EQ(nest.version->osr_exits.size(), 1u);
  EXPECT_TRUE(has_vectors(nest)) << nest.m.dump;

  constexpr uint32_t kCount = 300'000, kFrom = 4 * kCount, kTo = 8 * kCount + 64;
  auto* words = reinterpret_cast<float*>(nest.m.instance->memory());
  for (uint32_t i = 0; i <= kCount; ++i) words[i] = static_cast<float>(i % 1000);
  // Left between strips, and entered again where it was.
  std::atomic<const void*>& slot = *nest.version->osr_exits[0].slot;
  slot.store(nest_leave_word(kNestLeftAfterPoll));
  Frame frame{uint32_t{0} - kFrom, kFrom, kTo};
  EXPECT_EQ(nest.run(frame), kNestLeftAfterPoll);
  EXPECT_NE(static_cast<uint32_t>(frame[0]), 0u);
  slot.store(nullptr);
  EXPECT_EQ(nest.run(frame), kNestEnded);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(words[(kTo - kFrom) / 4 + i], words[i] + words[i + 1]) << i;
  EXPECT_EQ(words[kTo / 4], 0.0f);
}

// A load that is not needed on every way keeps a loop scalar where it is pinned in each iteration. Its value is carried instead, also where the
// loop can be left, and traps there before it is.
TEST(Nests, WithLoadsForTheirTrapsAreVectorsWithAWayOutAsWithout) {
  constexpr const char* kChosen =
      R"((module (memory 64) (func (export "f") (param $n i32) (result i32) (local $i i32) (local $sum i32) (local $v i32)
    (loop $l
      (local.set $v (i32.load8_u (local.get $i)))
      (if (i32.load8_u offset=1000000 (local.get $i)) (then (local.set $sum (i32.add (local.get $sum) (local.get $v)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (i32.add (local.get $sum) (local.get $i)))))";
  OptimizeRequest request;
  request.dump_ir = true;
  Nest plain(kChosen, 0, request);
  const auto has_vectors = [](const Nest& nest) { return nest.m.dump.find(" x i32>") != std::string::npos; };
  EXPECT_TRUE(has_vectors(plain)) << plain.m.dump;
  request.loop_exits = true;
  Nest nest(kChosen, 0, request);
  ASSERT_EQ(nest.version->osr_exits.size(), 1u);
  EXPECT_TRUE(has_vectors(nest)) << nest.m.dump;

  uint8_t* const bytes = nest.m.instance->memory();
  uint32_t sum = 0;
  constexpr uint32_t kCount = 500'000;
  for (uint32_t i = 0; i < kCount; ++i) {
    bytes[i] = static_cast<uint8_t>(i % 251);
    bytes[1'000'000 + i] = static_cast<uint8_t>(i % 3 == 0 ? 0 : i % 5);
    if (bytes[1'000'000 + i] != 0) sum += i % 251;
  }
  std::atomic<const void*>& slot = *nest.version->osr_exits[0].slot;
  slot.store(nest_leave_word(kNestLeftAfterPoll));
  Frame frame{kCount, 0, 0, 0};
  EXPECT_EQ(nest.run(frame), kNestLeftAfterPoll);
  EXPECT_LT(static_cast<uint32_t>(frame[1]), kCount);
  slot.store(nullptr);
  EXPECT_EQ(nest.run(frame), kNestEnded);
  EXPECT_EQ(static_cast<uint32_t>(frame[1]), kCount);
  EXPECT_EQ(static_cast<uint32_t>(frame[2]), sum);
}

// What counts in 32 bits beside bytes, and is needed only after the loop, would be a sum in vectors of four bytes a lane.
TEST(Nests, WithACounterThatIsNeededLaterAreAsWideAVectorWithAWayOutAsWithout) {
  constexpr const char* kLarger =
      R"((module (memory 64) (func (export "f") (param $left i32) (param $from i32) (param $to i32) (result i32)
        (local $a i32) (local $b i32) (local $done i32)
    (loop $l
      (local.set $a (i32.load8_u (local.get $from)))
      (local.set $b (i32.load8_u offset=1 (local.get $from)))
      (i32.store8 (local.get $to) (select (local.get $a) (local.get $b) (i32.gt_u (local.get $a) (local.get $b))))
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (local.set $to (i32.add (local.get $to) (i32.const 1)))
      (local.set $done (i32.add (local.get $done) (i32.const 3)))
      (br_if $l (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    (local.get $done))))";
  const auto bytes_in_vectors = [](const std::string& dump) {
    unsigned most = 0;
    for (size_t at = dump.find(" x i8>"); at != std::string::npos; at = dump.find(" x i8>", at + 1))
      most = std::max(most, static_cast<unsigned>(std::stoul(dump.substr(dump.rfind('<', at) + 1))));
    return most;
  };
  OptimizeRequest request;
  request.dump_ir = true;
  Nest plain(kLarger, 0, request);
  EXPECT_GE(bytes_in_vectors(plain.m.dump), 16u) << plain.m.dump;
  request.loop_exits = true;
  Nest nest(kLarger, 0, request);
  ASSERT_EQ(nest.version->osr_exits.size(), 1u);
  EXPECT_EQ(bytes_in_vectors(nest.m.dump), bytes_in_vectors(plain.m.dump)) << nest.m.dump;

  constexpr uint32_t kCount = 300'000, kTo = 1'000'000;
  uint8_t* const bytes = nest.m.instance->memory();
  for (uint32_t i = 0; i <= kCount; ++i) bytes[i] = static_cast<uint8_t>(i * i % 251);
  // Left between strips, and entered again where it was.
  std::atomic<const void*>& slot = *nest.version->osr_exits[0].slot;
  slot.store(nest_leave_word(kNestLeftAfterPoll));
  Frame frame{kCount, 0, kTo, 0, 0, 0, 0};
  EXPECT_EQ(nest.run(frame), kNestLeftAfterPoll);
  const auto done = static_cast<uint32_t>(frame[1]);
  EXPECT_LT(done, kCount);
  EXPECT_EQ(static_cast<uint32_t>(frame[5]), 3 * done);
  slot.store(nullptr);
  EXPECT_EQ(nest.run(frame), kNestEnded);
  EXPECT_EQ(static_cast<uint32_t>(frame[5]), 3 * kCount);
  for (uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(bytes[kTo + i], std::max(bytes[i], bytes[i + 1])) << i;
  EXPECT_EQ(bytes[kTo + kCount], 0);
}

TEST(Nests, ThatCannotBeLeftOrHaveShortIterationsCountNothing) {
  constexpr const char* kChase =
      R"((module (memory 1) (func (export "f") (param $at i32) (result i32) (local $n i32)
    (loop $l
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $l (local.tee $at (i32.load (local.get $at)))))
    (local.get $n))))";
  OptimizeRequest request;
  request.loop_exits = true;
  Nest polls(kChase, 0, request);
  EXPECT_EQ(polls.version->osr_exits.size(), 1u);
  EXPECT_TRUE(polls.version->polls_short_iterations);
  EXPECT_EQ(polls.version->work, nullptr) << "that would cost more than the poll";
  request.short_loop_exits = false;
  Nest stays(kChase, 0, request);
  EXPECT_TRUE(stays.version->osr_exits.empty());
  EXPECT_FALSE(stays.version->polls_short_iterations);
  EXPECT_EQ(stays.version->work, nullptr);
  // Code that nobody asks exits of is the same.
  request.loop_exits = false;
  Nest plain(kChase, 0, request);
  EXPECT_EQ(plain.version->code_size, stays.version->code_size);
}

TEST(Nests, AreTheSameEachTimeTheyAreCompiled) {
  OptimizeRequest request;
  request.dump_ir = true;
  Nest nest(kThreeLoops, 1, request);
  const std::string first = nest.m.dump;
  nest.compile(1);
  EXPECT_EQ(nest.m.dump, first);
}

TEST(Nests, HaveNoHandlerAroundThemHoweverFarOutSomethingIsDelegated) {
  std::string text = "(module (tag $t) (func $throws (throw $t)) (func (export \"f\") (param $n i32) ";
  constexpr int kBlocks = 80;
  for (int i = 0; i < kBlocks; ++i) text += "block ";
  text +=
      "(loop $l (try (do (if (i32.eq (local.get $n) (i32.const 1000)) (then (call $throws)))) (delegate 75))"
      " (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))";
  for (int i = 0; i < kBlocks; ++i) text += " end";
  Nest nest(text + "))", 0);
  Frame frame{500};
  EXPECT_EQ(nest.run(frame), kNestEnded);
  frame.expect({0});
}

TEST(Nests, AreRefusedWhereALoopCannotBeOne) {
  Optimized m(R"((module (tag $t) (func (export "f") (param i32)
    (try (do (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))) (catch $t)))))");
  OptimizeRequest request;
  request.module = m.module;
  request.function = FuncIndex(0);
  for (const uint32_t root : {0u, 1u}) {
    request.nest = LoopIndex(root);
    const auto refused = optimizer().compile(request, *m.arena);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace hindsight::jit::testing
