// Every vector instruction, on edge cases and random bits: code for the least processor and for this one, of
// both tiers, must agree. The official scripts say what is right; here operands come from registers, slots,
// constants and both from the same local.
#include <array>
#include <random>

#include "jit/baseline/function_compiler.h"
#include "jit/wasm/opcodes.h"
#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

struct Op {
  const char* name;
  wasm::ImmKind imm;
  std::string_view signature;
};
constexpr Op kOps[] = {
#define HINDSIGHT_OP(enumerator, code, text, imm, signature) {text, wasm::ImmKind::imm, signature},
    HINDSIGHT_WASM_SIMD_OPCODES(HINDSIGHT_OP)
#undef HINDSIGHT_OP
};

constexpr const char* kConstantText = "v128.const i32x4 0x80007fff 0x3f800000 0x7fc00001 0xfe10800f";
const Value kConstant = v128(0x3f80000080007fff, 0xfe10800f7fc00001);
constexpr uint32_t kOffset = 3;

enum class Operands { kParameters, kTemporaries, kSlots, kConstant, kTwice };
constexpr Operands kAllOperands[] = {Operands::kParameters, Operands::kTemporaries, Operands::kSlots,
                                     Operands::kConstant, Operands::kTwice};

const char* type_of(char letter) {
  switch (letter) {
    case 'i':
      return "i32";
    case 'I':
      return "i64";
    case 'f':
      return "f32";
    case 'F':
      return "f64";
    default:
      return "v128";
  }
}

// Does nothing to a value but to put it into a register of its own.
std::string touched(char letter) {
  switch (letter) {
    case 'i':
      return " i32.const 1 i32.xor i32.const 1 i32.xor";
    case 'I':
      return " i64.const 1 i64.xor i64.const 1 i64.xor";
    case 'f':
      return " f32.neg f32.neg";
    case 'F':
      return " f64.neg f64.neg";
    default:
      return " v128.not v128.not";
  }
}

std::vector<std::string> immediates_of(const Op& op) {
  const std::string name = op.name;
  const auto lanes = [&]() -> std::vector<std::string> {
    if (name.starts_with("i8x16") || name.find("8_lane") != std::string::npos) return {" 0", " 1", " 15"};
    if (name.starts_with("i16x8") || name.find("16_lane") != std::string::npos) return {" 0", " 3", " 7"};
    if (name.find("x4") != std::string::npos || name.find("32_lane") != std::string::npos)
      return {" 0", " 1", " 2", " 3"};
    return {" 0", " 1"};
  };
  switch (op.imm) {
    case wasm::ImmKind::kMemArg:
      return {" offset=" + std::to_string(kOffset)};
    case wasm::ImmKind::kMemArgLane: {
      std::vector<std::string> out;
      for (const std::string& lane : lanes()) out.push_back(" offset=" + std::to_string(kOffset) + lane);
      return out;
    }
    case wasm::ImmKind::kLane:
      return lanes();
    case wasm::ImmKind::kV128:
      return {" i64x2 0x123456789abcdef0 -2", " i64x2 0 0", " i64x2 -1 -1"};
    case wasm::ImmKind::kShuffle:
      return {" 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
              " 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31",
              " 4 5 6 7 4 5 6 7 12 13 14 15 0 1 2 3",
              " 28 29 30 31 16 17 18 19 20 21 22 23 16 17 18 19",
              " 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3",
              " 31 30 29 28 27 26 25 24 23 22 21 20 19 18 17 16",
              " 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
              " 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23",
              " 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31",
              " 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23",
              " 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31",
              " 16 0 17 1 18 2 19 3 20 4 21 5 22 6 23 7",
              " 31 0 30 1 29 2 28 3 27 4 26 5 25 6 24 7"};
    default:
      return {""};
  }
}

std::string export_name(const Op& op, const std::string& immediate, Operands operands) {
  return op.name + immediate + " " + std::to_string(static_cast<int>(operands));
}

// Empty where the instruction has no such form.
std::string function_of(const Op& op, const std::string& immediate, Operands operands) {
  const std::string_view params = op.signature.substr(0, op.signature.find(':'));
  const std::string_view results = op.signature.substr(params.size() + 1);
  if (operands == Operands::kTwice && !(params.size() >= 2 && params[0] == 'v' && params[1] == 'v'))
    return "";
  if (operands != Operands::kParameters && params.empty()) return "";
  std::string types;
  for (const char letter : params) types += std::string(" ") + type_of(letter);
  std::string text = "(func (export \"" + export_name(op, immediate, operands) + "\") (param" + types + ")";
  if (!results.empty()) text += std::string(" (result ") + type_of(results[0]) + ")";
  if (operands == Operands::kSlots) text += " (block (result" + types + ")";
  for (size_t i = 0; i < params.size(); ++i) {
    const bool constant = operands == Operands::kConstant && i + 1 == params.size();
    if (constant && params[i] == 'v')
      text += std::string(" ") + kConstantText;
    else if (constant && params[i] == 'i')
      text += " i32.const 37";
    else
      text += " local.get " + std::to_string(operands == Operands::kTwice && i == 1 ? 0 : i);
    if (operands == Operands::kTemporaries) text += touched(params[i]);
  }
  if (operands == Operands::kSlots) text += " br 0)";
  return text + " " + op.name + immediate + ")\n";
}

std::string module_text() {
  std::string text = "(module (memory (export \"memory\") 1)\n";
  for (const Op& op : kOps)
    for (const std::string& immediate : immediates_of(op))
      for (const Operands operands : kAllOperands) text += function_of(op, immediate, operands);
  return text + ")";
}

// Values that are edges in some shape, and some that are not.
std::vector<Value> vectors() {
  const auto floats = [](float a, float b, float c, float d) {
    const auto word = [](float v) { return uint64_t{std::bit_cast<uint32_t>(v)}; };
    return v128(word(b) << 32 | word(a), word(d) << 32 | word(c));
  };
  const auto doubles = [](double a, double b) {
    return v128(std::bit_cast<uint64_t>(a), std::bit_cast<uint64_t>(b));
  };
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<Value> out = {
      v128(0, 0),
      v128(UINT64_MAX, UINT64_MAX),
      v128(0x8000000000000000, 0x7fffffffffffffff),
      v128(0x8000000080000000, 0x7fffffff7fffffff),
      v128(0x8000800080008000, 0x7fff7fff80007fff),
      v128(0x8080807f7f7f0001, 0xff017f80fe02807f),
      v128(0x0706050403020100, 0x0f0e0d0c0b0a0908),
      v128(0x11100f8090a0ff7f, 0x1f1e1d1c1b1a1918),
      v128(0x00000000ffffffff, 0xffffffff00000000),
      v128(0x00ff00ff00ff00ff, 0xff00ff00ff00ff00),
      v128(0x7fa00000ffa00001, 0x7fc000007f800000),  // signaling and quiet NaNs, infinity
      v128(0x7ff4000000000000, 0xfff8000000000001),
      floats(0.0f, -0.0f, inf, -inf),
      floats(-0.0f, 0.0f, 1.5f, -2.5f),
      floats(2147483648.0f, -2147483648.0f, 4294967296.0f, 2147483520.0f),
      floats(0.5f, -0.5f, 1e-45f, 3.4e38f),
      floats(4294967040.0f, -0.99999994f, 16777217.0f, 8388607.5f),
      doubles(0.0, -0.0),
      doubles(-0.0, 0.0),
      doubles(2147483647.0, -2147483648.9),
      doubles(4294967295.5, -0.9),
      doubles(1e300, -1e-310),
      doubles(std::numeric_limits<double>::infinity(), -2.5),
  };
  std::mt19937_64 random(17);
  for (int i = 0; i < 5; ++i) out.push_back(v128(random(), random()));
  return out;
}

std::vector<Value> scalars(char letter) {
  switch (letter) {
    case 'i':
      return {i32(0), i32(1), i32(7), i32(8), i32(15), i32(31), i32(33), i32(64), i32(~0u), i32(0x8001ff80)};
    case 'I':
      return {i64(0), i64(~uint64_t{0}), i64(0x8000000000000001)};
    case 'f':
      return {f32(-0.0f), f32_bits(0x7fa00000), f32(1.25f)};
    default:
      return {f64(-0.0), f64_bits(0x7ff4000000000000), f64(1.25)};
  }
}

// All of one operand; of more, every value of each several times, in different company.
std::vector<std::vector<Value>> inputs_of(std::string_view params, bool memory) {
  static const std::vector<Value> kVectors = vectors();
  const auto values_of = [&](char letter) {
    if (letter == 'v') return kVectors;
    if (memory)
      return std::vector<Value>{i32(0), i32(100), i32(65536 - kOffset - 16), i32(65536 - kOffset - 3),
                                i32(~0u)};
    return scalars(letter);
  };
  std::vector<std::vector<Value>> out = {{}};
  for (const char letter : params) {
    const std::vector<Value> values = values_of(letter);
    const size_t most =
        out.size() == 1 ? values.size() : std::min<size_t>(values.size(), letter == 'v' ? 7 : 16);
    std::vector<std::vector<Value>> longer;
    for (size_t i = 0; i < out.size(); ++i)
      for (size_t k = 0; k < most; ++k) {
        longer.push_back(out[i]);
        longer.back().push_back(values[(i * 5 + k) % values.size()]);
      }
    out = std::move(longer);
    if (out.size() > 600) out.resize(600);
  }
  return out;
}

bool computes_floats(const Op& op) {
  const std::string_view name = op.name;
  if (!name.starts_with("f32x4") && !name.starts_with("f64x2")) return false;
  for (const char* exact : {".eq", ".ne", ".lt", ".gt", ".le", ".ge", ".abs", ".neg", ".pmin", ".pmax",
                            "splat", "lane", ".relaxed_min", ".relaxed_max"})
    if (name.ends_with(exact)) return false;
  return true;
}

// Which NaN an operator gives is not specified, except that it is a quiet one.
void canonicalize_nans(const Op& op, Outcome& outcome) {
  if (!computes_floats(op)) return;
  for (Value& value : outcome.results) {
    if (value.type != wasm::ValType::kV128) continue;
    for (uint64_t* half : {&value.bits, &value.high}) {
      if (std::string_view(op.name).starts_with("f64x2")) {
        if ((*half << 1) <= 0xffe0000000000000) continue;
        EXPECT_NE(*half & uint64_t{1} << 51, 0u) << op.name << " gave a signaling NaN";
        *half = 0x7ff8000000000000;
        continue;
      }
      for (const int shift : {0, 32}) {
        const auto lane = static_cast<uint32_t>(*half >> shift);
        if ((lane << 1) <= 0xff000000u) continue;
        EXPECT_NE(lane & 1u << 22, 0u) << op.name << " gave a signaling NaN";
        *half = (*half & ~(uint64_t{UINT32_MAX} << shift)) | uint64_t{0x7fc00000} << shift;
      }
    }
  }
}

// Code of one tier for one processor.
struct Subject {
  const char* name;
  bool fused;      // multiplies and adds in one, where that is allowed
  bool optimized;  // where operands come from matters to baseline code only, except for constants
  std::vector<std::unique_ptr<CodeVersion>> versions;
  std::unique_ptr<TestInstance> instance;
};

class SimdTest : public ::testing::Test {
 protected:
  void SetUp() override { arena_ = std::move(*CodeArena::create(size_t{256} << 20)); }

  void add_baseline(const char* name, baseline::TargetFeatures features, BoundsChecks bounds) {
    auto subject = std::make_unique<Subject>();
    subject->name = name;
    subject->fused = features.fma;
    subject->optimized = false;
    Subject* s = subject.get();
    subject->instance = std::make_unique<TestInstance>(
        module_, *arena_, [this, s, features, bounds](const wasm::Module& m, FuncIndex f) -> const void* {
          CompileOptions options;
          options.bounds = bounds;
          auto version = baseline::FunctionCompiler(m, f, options, features).compile(*arena_);
          EXPECT_TRUE(version) << version.error().describe();
          if (!version) return nullptr;
          s->versions.push_back(std::move(*version));
          return s->versions.back()->entry;
        });
    subjects_.push_back(std::move(subject));
  }

  void add_optimized(const char* name, bool host_features, bool fused) {
    auto subject = std::make_unique<Subject>();
    subject->name = name;
    subject->fused = fused;
    subject->optimized = true;
    Subject* s = subject.get();
    subject->instance = std::make_unique<TestInstance>(
        module_, *arena_, [this, s, host_features](const wasm::Module&, FuncIndex f) -> const void* {
          OptimizeRequest request;
          request.module = module_;
          request.function = f;
          request.tuning.use_host_features = host_features;
          request.tuning.optimization_level = 2;
          auto result = optimizer().compile(request, *arena_);
          EXPECT_TRUE(result) << result.error().describe();
          if (!result) return nullptr;
          s->versions.push_back(std::move(result->version));
          return s->versions.back()->entry;
        });
    subjects_.push_back(std::move(subject));
  }

  std::unique_ptr<CodeArena> arena_;
  std::shared_ptr<const wasm::Module> module_;
  std::vector<std::unique_ptr<Subject>> subjects_;
};

TEST_F(SimdTest, TiersAndProcessorsAgreeOnEveryInstruction) {
  module_ = TestInstance::module_of(module_text());
  ASSERT_TRUE(module_);
  const baseline::TargetFeatures host = baseline::TargetFeatures::host();
  baseline::TargetFeatures least;
  baseline::TargetFeatures avx = host;
  avx.avx2 = avx.fma = false;
  add_baseline("baseline, SSE4.1", least, BoundsChecks::kGuardPages);
  add_baseline("baseline, AVX", avx, BoundsChecks::kExplicit);
  add_baseline("baseline, this processor", host, BoundsChecks::kGuardPages);
  add_optimized("optimized, x86-64-v2", false, false);
  add_optimized("optimized, this processor", true, host.fma);

  std::array<uint8_t, 256> pattern;
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<uint8_t>(i * 73 + 19);
  std::vector<uint8_t> memory(65536);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = pattern[i % 251];

  for (const auto& subject : subjects_)
    std::memcpy(subject->instance->memory(), memory.data(), memory.size());

  for (const Op& op : kOps) {
    const bool is_memory = op.imm == wasm::ImmKind::kMemArg || op.imm == wasm::ImmKind::kMemArgLane;
    const bool may_fuse = std::string_view(op.name).find("madd") != std::string_view::npos;
    const std::string_view params = op.signature.substr(0, op.signature.find(':'));
    const bool stores = is_memory && op.signature.ends_with(':');
    const auto inputs = inputs_of(params, is_memory);
    for (const std::string& immediate : immediates_of(op)) {
      for (const Operands operands : kAllOperands) {
        if (function_of(op, immediate, operands).empty()) continue;
        const std::string name = export_name(op, immediate, operands);
        SCOPED_TRACE(name);
        for (std::vector<Value> input : inputs) {
          // What the function does not read must not matter: another function with parameters says what it
          // reads.
          std::vector<Value> plain = input;
          if (operands == Operands::kTwice) plain[1] = plain[0];
          if (operands == Operands::kConstant && params.back() == 'v') plain.back() = kConstant;
          if (operands == Operands::kConstant && params.back() == 'i') plain.back() = i32(37);
          const std::string plain_name = export_name(op, immediate, Operands::kParameters);
          for (const bool fused : {false, true}) {
            std::optional<Outcome> wanted;
            std::array<uint8_t, 32> wanted_bytes{};
            for (const auto& subject : subjects_) {
              if (may_fuse ? subject->fused != fused : fused) continue;
              if (subject->optimized && operands != Operands::kParameters && operands != Operands::kConstant)
                continue;
              // Only the first one is asked for both functions, or the optimizing tier would compile all
              // twice.
              for (const bool ask_plain : {true, false}) {
                if (ask_plain && wanted) continue;
                if (stores) std::memcpy(subject->instance->memory(), memory.data(), memory.size());
                Outcome outcome =
                    subject->instance->call(ask_plain ? plain_name : name, ask_plain ? plain : input);
                canonicalize_nans(op, outcome);
                std::array<uint8_t, 32> bytes{};
                if (stores && plain[0].bits <= 65536 - 32)
                  std::memcpy(bytes.data(), subject->instance->memory() + plain[0].bits, bytes.size());
                if (!wanted) {
                  wanted = outcome;
                  wanted_bytes = bytes;
                }
                ASSERT_EQ(outcome, *wanted)
                    << subject->name << ", operands " << ::testing::PrintToString(input);
                ASSERT_EQ(bytes, wanted_bytes) << subject->name;
              }
            }
          }
        }
      }
    }
  }
}

// What no official script says: the products of relaxed_dot, and that relaxed_nmadd negates the product.
TEST_F(SimdTest, RelaxedOperatorsDoWhatTheyAreDocumentedToDo) {
  module_ = TestInstance::module_of(R"((module
    (func (export "dot") (param v128 v128) (result v128) local.get 0 local.get 1 i16x8.relaxed_dot_i8x16_i7x16_s)
    (func (export "dot_add") (param v128 v128 v128) (result v128)
      local.get 0 local.get 1 local.get 2 i32x4.relaxed_dot_i8x16_i7x16_add_s)
    (func (export "nmadd") (param v128 v128 v128) (result v128)
      local.get 0 local.get 1 local.get 2 f32x4.relaxed_nmadd)))");
  ASSERT_TRUE(module_);
  const baseline::TargetFeatures host = baseline::TargetFeatures::host();
  add_baseline("baseline, SSE4.1", {}, BoundsChecks::kGuardPages);
  add_baseline("baseline, this processor", host, BoundsChecks::kGuardPages);
  add_optimized("optimized, x86-64-v2", false, false);
  add_optimized("optimized, this processor", true, host.fma);
  const Value counting = v128(0x0706050403020100, 0x0f0e0d0c0b0a0908);
  for (const auto& subject : subjects_) {
    SCOPED_TRACE(subject->name);
    TestInstance& instance = *subject->instance;
    EXPECT_EQ(instance.call("dot", {counting, counting}),
              returns({v128(0x00550029000d0001, 0x01a5013900dd0091)}));
    // -128 * 127 twice, 127 * 127 twice
    EXPECT_EQ(instance.call("dot", {v128(0x7f7f8080, 0), v128(0x7f7f7f7f, 0)}),
              returns({v128(0x7e028100, 0)}));
    EXPECT_EQ(instance.call("dot_add", {counting, counting, v128(0x0000000100000000, 0x0000000300000002)}),
              returns({v128(0x0000007f0000000e, 0x000002e100000170)}));
    // (1 + 2^-22) (1 + 2^-15), of which 1.000204 (in base 16) leaves 2^-37 or, rounded twice, nothing.
    EXPECT_EQ(instance.call("nmadd", {v128(0x3f800002, 0), v128(0x3f800100, 0), v128(0x3f800102, 0)}),
              returns({v128(subject->fused ? 0xad000000 : 0, 0)}));
  }
}

// Functions of even index are optimized, those of odd index are baseline code, or the other way round.
TEST_F(SimdTest, VectorsTravelBetweenTiersAndTheHost) {
  module_ = TestInstance::module_of(R"((module
    (import "host" "mix" (func $mix (param i32 v128 f32 v128) (result v128 i32 v128)))
    (type $many (func (param v128 i32 v128 f64 v128 v128 v128 v128 v128 v128 v128 i64 i64 i64 i64 i64 v128)
      (result v128 i32 v128 f32)))
    (global $g (mut v128) (v128.const i32x4 1 2 3 4))
    (global $c v128 (v128.const i32x4 10 20 30 40))
    (table funcref (elem $many))
    (func $odd)
    (func $many (type $many)
      local.get 0 local.get 2 i32x4.add local.get 4 i32x4.add local.get 5 i32x4.add local.get 6 i32x4.add
      local.get 7 i32x4.add local.get 8 i32x4.add local.get 9 i32x4.add
      local.get 1
      local.get 10 local.get 16 i32x4.sub
      local.get 3 f32.demote_f64)
    (func $none)
    (func (export "call") (param v128 i32) (result v128 i32 v128 f32)
      local.get 0 i32.const 7 local.get 0 f64.const 1.5 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
      local.get 0 global.get $g i64.const 1 i64.const 2 i64.const 3 i64.const 4 i64.const 5 global.get $c
      (if (param v128 i32 v128 f64 v128 v128 v128 v128 v128 v128 v128 i64 i64 i64 i64 i64 v128)
          (result v128 i32 v128 f32) (local.get 1)
        (then call $many)
        (else i32.const 0 call_indirect (type $many))))
    (func $nothing)
    (func (export "host") (param v128 v128) (result v128 i32 v128)
      i32.const 5 local.get 0 f32.const 2 local.get 1 call $mix)
    (func (export "globals") (param v128) (result v128)
      global.get $g local.get 0 global.set $g global.get $c i32x4.add)
    (func (export "choose") (param v128 v128 i32) (result v128) local.get 0 local.get 1 local.get 2 select (result v128))
    (func (export "sum") (param i32) (result v128) (local v128 i32 v128)
      (v128.const i32x4 0 1 2 3)
      (loop (param v128) (result v128)
        local.get 1 i32x4.add local.tee 3
        local.get 1 (i32x4.splat (local.get 2)) i32x4.add local.set 1
        (local.set 2 (i32.add (local.get 2) (i32.const 1)))
        (br_if 0 (i32.lt_u (local.get 2) (local.get 0)))))
  ))");
  ASSERT_TRUE(module_);
  for (const uint32_t parity : {0u, 1u}) {
    std::vector<std::unique_ptr<CodeVersion>> versions;
    TestInstance::Options options;
    options.host["host.mix"] = [](TestInstance&, uint64_t* slots) {
      EXPECT_EQ(slots[0], 5u);
      EXPECT_EQ(slots[3], std::bit_cast<uint32_t>(2.0f));
      const uint64_t a[] = {slots[1], slots[2]}, b[] = {slots[4], slots[5]};
      slots[0] = b[0], slots[1] = b[1];
      slots[2] = 77;
      slots[3] = a[0], slots[4] = a[1];
      return true;
    };
    TestInstance instance(
        module_, *arena_,
        [&](const wasm::Module& m, FuncIndex f) -> const void* {
          if (f.value % 2 == parity) {
            OptimizeRequest request;
            request.module = module_;
            request.function = f;
            auto result = optimizer().compile(request, *arena_);
            EXPECT_TRUE(result) << result.error().describe();
            versions.push_back(std::move(result->version));
          } else {
            auto version =
                baseline::FunctionCompiler(m, f, {}, baseline::TargetFeatures::host()).compile(*arena_);
            EXPECT_TRUE(version) << version.error().describe();
            versions.push_back(std::move(*version));
          }
          return versions.back()->entry;
        },
        options);
    const Value v = v128(0x0000000200000001, 0x0000000400000003);
    const Outcome many = returns({v128(0x0000001000000008, 0x0000002000000018), i32(7),
                                  v128(0xffffffeefffffff7, 0xffffffdcffffffe5), f32(1.5f)});
    for (const uint32_t direct : {0u, 1u}) EXPECT_EQ(instance.call("call", {v, i32(direct)}), many);
    EXPECT_EQ(instance.call("host", {v, v128(5, 6)}), returns({v128(5, 6), i32(77), v}));
    EXPECT_EQ(instance.call("globals", {v128(9, 8)}),
              returns({v128(0x000000160000000b, 0x0000002c00000021)}));
    EXPECT_EQ(instance.call("globals", {v}), returns({v128(0x0000001400000013, 0x0000002800000026)}));
    EXPECT_EQ(instance.call("choose", {v, v128(5, 6), i32(1)}), returns({v}));
    EXPECT_EQ(instance.call("choose", {v, v128(5, 6), i32(0)}), returns({v128(5, 6)}));
    EXPECT_EQ(instance.call("sum", {i32(5)}), returns({v128(0x0000000b0000000a, 0x0000000d0000000c)}));
  }
}

// The contract of on-stack replacement: slots of sixteen bytes where the function has a vector.
TEST_F(SimdTest, ALoopWithVectorsIsEnteredInTheMiddle) {
  module_ = TestInstance::module_of(R"((module
    (func (export "f") (param i32 v128) (result v128) (local i64)
      (v128.const i32x4 1 1 1 1)
      (loop (param v128) (result v128)
        local.get 1 i32x4.add
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (br_if 0 (local.get 0))))))");
  ASSERT_TRUE(module_);
  OptimizeRequest request;
  request.module = module_;
  request.function = FuncIndex(0);
  request.osr_loops = {LoopIndex(0)};
  auto optimized = optimizer().compile(request, *arena_);
  ASSERT_TRUE(optimized) << optimized.error().describe();
  ASSERT_EQ(optimized->version->osr_entries.size(), 1u);
  // Every function is entered by baseline code whose first loop header finds the slot filled.
  std::unique_ptr<CodeVersion> version;
  TestInstance instance(module_, *arena_, [&](const wasm::Module& m, FuncIndex f) -> const void* {
    version =
        std::move(*baseline::FunctionCompiler(m, f, {}, baseline::TargetFeatures::host()).compile(*arena_));
    // Release: what the slot leads to was written before.
    version->osr_slots[0].store(optimized->version->osr_entries[0].code, std::memory_order_release);
    return version->entry;
  });
  EXPECT_EQ(instance.call("f", {i32(10), v128(0x0000000200000001, 0x0000000400000003)}),
            returns({v128(0x000000150000000b, 0x000000290000001f)}));
}

}  // namespace
}  // namespace hindsight::jit::testing
