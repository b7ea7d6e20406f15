// Every numeric operator against a plain C++ evaluator, over edge values, with its operands in registers, in
// frame slots and as constants. Also comparisons in every context that fuses with them.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/jit/baseline/baseline_support.h"

namespace hindsight::jit::testing {
namespace {

using wasm::Opcode;

struct Expected {
  TrapCode trap = TrapCode::kNone;
  uint64_t bits = 0;
  bool any_nan = false;  // an arithmetic NaN: payload unspecified
};

Expected trap(TrapCode code) {
  return {code, 0, false};
}
Expected of(uint32_t v) {
  return {TrapCode::kNone, v, false};
}
Expected of(uint64_t v) {
  return {TrapCode::kNone, v, false};
}
Expected of(float v) {
  return {TrapCode::kNone, std::bit_cast<uint32_t>(v), std::isnan(v)};
}
Expected of(double v) {
  return {TrapCode::kNone, std::bit_cast<uint64_t>(v), std::isnan(v)};
}
Expected of(bool v) {
  return of(uint32_t{v});
}

template <typename U>
Expected integer(uint32_t op, U a, U b) {  // op: offset from add of its family
  using S = std::make_signed_t<U>;
  constexpr unsigned kBits = sizeof(U) * 8;
  const unsigned n = static_cast<unsigned>(b % kBits);
  const S sa = static_cast<S>(a);
  const S sb = static_cast<S>(b);
  switch (op) {
    case 0:
      return of(static_cast<U>(a + b));
    case 1:
      return of(static_cast<U>(a - b));
    case 2:
      return of(static_cast<U>(a * b));
    case 3:
      if (b == 0) return trap(TrapCode::kIntegerDivideByZero);
      if (sa == std::numeric_limits<S>::min() && sb == -1) return trap(TrapCode::kIntegerOverflow);
      return of(static_cast<U>(sa / sb));
    case 4:
      return b == 0 ? trap(TrapCode::kIntegerDivideByZero) : of(static_cast<U>(a / b));
    case 5:
      if (b == 0) return trap(TrapCode::kIntegerDivideByZero);
      return of(sb == -1 ? U{0} : static_cast<U>(sa % sb));
    case 6:
      return b == 0 ? trap(TrapCode::kIntegerDivideByZero) : of(static_cast<U>(a % b));
    case 7:
      return of(static_cast<U>(a & b));
    case 8:
      return of(static_cast<U>(a | b));
    case 9:
      return of(static_cast<U>(a ^ b));
    case 10:
      return of(static_cast<U>(a << n));
    case 11:
      return of(static_cast<U>(sa >> n));
    case 12:
      return of(static_cast<U>(a >> n));
    case 13:
      return of(std::rotl(a, static_cast<int>(n)));
    default:
      return of(std::rotr(a, static_cast<int>(n)));
  }
}

template <typename U>
Expected int_compare(uint32_t op, U a, U b) {  // op: offset from eq
  using S = std::make_signed_t<U>;
  const S sa = static_cast<S>(a), sb = static_cast<S>(b);
  switch (op) {
    case 0:
      return of(a == b);
    case 1:
      return of(a != b);
    case 2:
      return of(sa < sb);
    case 3:
      return of(a < b);
    case 4:
      return of(sa > sb);
    case 5:
      return of(a > b);
    case 6:
      return of(sa <= sb);
    case 7:
      return of(a <= b);
    case 8:
      return of(sa >= sb);
    default:
      return of(a >= b);
  }
}

template <typename F>
Expected float_compare(uint32_t op, F a, F b) {
  switch (op) {
    case 0:
      return of(a == b);
    case 1:
      return of(a != b);
    case 2:
      return of(a < b);
    case 3:
      return of(a > b);
    case 4:
      return of(a <= b);
    default:
      return of(a >= b);
  }
}

template <typename F, typename U>
Expected float_op(uint32_t op, U a_bits, U b_bits) {  // op: offset from abs
  const F a = std::bit_cast<F>(a_bits), b = std::bit_cast<F>(b_bits);
  constexpr U kSign = U{1} << (sizeof(U) * 8 - 1);
  switch (op) {
    case 0:
      return {TrapCode::kNone, static_cast<U>(a_bits & ~kSign), false};
    case 1:
      return {TrapCode::kNone, static_cast<U>(a_bits ^ kSign), false};
    case 2:
      return of(std::ceil(a));
    case 3:
      return of(std::floor(a));
    case 4:
      return of(std::trunc(a));
    case 5:
      return of(std::nearbyint(a));
    case 6:
      return of(std::sqrt(a));
    case 7:
      return of(a + b);
    case 8:
      return of(a - b);
    case 9:
      return of(a * b);
    case 10:
      return of(a / b);
    case 11:
      if (std::isnan(a) || std::isnan(b)) return of(std::numeric_limits<F>::quiet_NaN());
      if (a == b) return {TrapCode::kNone, static_cast<U>(a_bits | b_bits), false};
      return of(a < b ? a : b);
    case 12:
      if (std::isnan(a) || std::isnan(b)) return of(std::numeric_limits<F>::quiet_NaN());
      if (a == b) return {TrapCode::kNone, static_cast<U>(a_bits & b_bits), false};
      return of(a > b ? a : b);
    default:
      return {TrapCode::kNone, static_cast<U>((a_bits & ~kSign) | (b_bits & kSign)), false};
  }
}

// Truncation decided in long double, which holds every operand and bound exactly.
template <typename I>
Expected truncate(long double x, bool saturate) {
  using U = std::make_unsigned_t<I>;
  if (std::isnan(x)) return saturate ? of(U{0}) : trap(TrapCode::kInvalidConversion);
  const long double t = std::trunc(x);
  const bool low = t < static_cast<long double>(std::numeric_limits<I>::min());
  const bool high = t > static_cast<long double>(std::numeric_limits<I>::max());
  if (low || high) {
    if (!saturate) return trap(TrapCode::kIntegerOverflow);
    return of(static_cast<U>(low ? std::numeric_limits<I>::min() : std::numeric_limits<I>::max()));
  }
  return of(static_cast<U>(static_cast<I>(t)));
}

Expected evaluate(uint16_t code, uint64_t a, uint64_t b) {
  const auto a32 = static_cast<uint32_t>(a), b32 = static_cast<uint32_t>(b);
  const float fa = std::bit_cast<float>(a32);
  const double da = std::bit_cast<double>(a);
  if (code >= 0x46 && code <= 0x4f) return int_compare<uint32_t>(code - 0x46u, a32, b32);
  if (code >= 0x51 && code <= 0x5a) return int_compare<uint64_t>(code - 0x51u, a, b);
  if (code >= 0x5b && code <= 0x60) return float_compare<float>(code - 0x5bu, fa, std::bit_cast<float>(b32));
  if (code >= 0x61 && code <= 0x66) return float_compare<double>(code - 0x61u, da, std::bit_cast<double>(b));
  if (code >= 0x6a && code <= 0x78) return integer<uint32_t>(code - 0x6au, a32, b32);
  if (code >= 0x7c && code <= 0x8a) return integer<uint64_t>(code - 0x7cu, a, b);
  if (code >= 0x8b && code <= 0x98) return float_op<float, uint32_t>(code - 0x8bu, a32, b32);
  if (code >= 0x99 && code <= 0xa6) return float_op<double, uint64_t>(code - 0x99u, a, b);
  const bool sat = code >= 0xfc00;
  switch (static_cast<Opcode>(code)) {
    case Opcode::kI32Eqz:
      return of(a32 == 0);
    case Opcode::kI64Eqz:
      return of(a == 0);
    case Opcode::kI32Clz:
      return of(static_cast<uint32_t>(std::countl_zero(a32)));
    case Opcode::kI32Ctz:
      return of(static_cast<uint32_t>(std::countr_zero(a32)));
    case Opcode::kI32Popcnt:
      return of(static_cast<uint32_t>(std::popcount(a32)));
    case Opcode::kI64Clz:
      return of(static_cast<uint64_t>(std::countl_zero(a)));
    case Opcode::kI64Ctz:
      return of(static_cast<uint64_t>(std::countr_zero(a)));
    case Opcode::kI64Popcnt:
      return of(static_cast<uint64_t>(std::popcount(a)));
    case Opcode::kI32WrapI64:
      return of(a32);
    case Opcode::kI32TruncF32S:
    case Opcode::kI32TruncSatF32S:
      return truncate<int32_t>(fa, sat);
    case Opcode::kI32TruncF32U:
    case Opcode::kI32TruncSatF32U:
      return truncate<uint32_t>(fa, sat);
    case Opcode::kI32TruncF64S:
    case Opcode::kI32TruncSatF64S:
      return truncate<int32_t>(da, sat);
    case Opcode::kI32TruncF64U:
    case Opcode::kI32TruncSatF64U:
      return truncate<uint32_t>(da, sat);
    case Opcode::kI64TruncF32S:
    case Opcode::kI64TruncSatF32S:
      return truncate<int64_t>(fa, sat);
    case Opcode::kI64TruncF32U:
    case Opcode::kI64TruncSatF32U:
      return truncate<uint64_t>(fa, sat);
    case Opcode::kI64TruncF64S:
    case Opcode::kI64TruncSatF64S:
      return truncate<int64_t>(da, sat);
    case Opcode::kI64TruncF64U:
    case Opcode::kI64TruncSatF64U:
      return truncate<uint64_t>(da, sat);
    case Opcode::kI64ExtendI32S:
      return of(static_cast<uint64_t>(static_cast<int32_t>(a32)));
    case Opcode::kI64ExtendI32U:
      return of(uint64_t{a32});
    case Opcode::kF32ConvertI32S:
      return of(static_cast<float>(static_cast<int32_t>(a32)));
    case Opcode::kF32ConvertI32U:
      return of(static_cast<float>(a32));
    case Opcode::kF32ConvertI64S:
      return of(static_cast<float>(static_cast<int64_t>(a)));
    case Opcode::kF32ConvertI64U:
      return of(static_cast<float>(a));
    case Opcode::kF64ConvertI32S:
      return of(static_cast<double>(static_cast<int32_t>(a32)));
    case Opcode::kF64ConvertI32U:
      return of(static_cast<double>(a32));
    case Opcode::kF64ConvertI64S:
      return of(static_cast<double>(static_cast<int64_t>(a)));
    case Opcode::kF64ConvertI64U:
      return of(static_cast<double>(a));
    case Opcode::kF32DemoteF64:
      return of(static_cast<float>(da));
    case Opcode::kF64PromoteF32:
      return of(static_cast<double>(fa));
    case Opcode::kI32ReinterpretF32:
    case Opcode::kF32ReinterpretI32:
      return of(a32);
    case Opcode::kI64ReinterpretF64:
    case Opcode::kF64ReinterpretI64:
      return of(a);
    case Opcode::kI32Extend8S:
      return of(static_cast<uint32_t>(static_cast<int8_t>(a)));
    case Opcode::kI32Extend16S:
      return of(static_cast<uint32_t>(static_cast<int16_t>(a)));
    case Opcode::kI64Extend8S:
      return of(static_cast<uint64_t>(static_cast<int8_t>(a)));
    case Opcode::kI64Extend16S:
      return of(static_cast<uint64_t>(static_cast<int16_t>(a)));
    case Opcode::kI64Extend32S:
      return of(static_cast<uint64_t>(static_cast<int32_t>(a)));
    default:
      ADD_FAILURE() << "no evaluator for opcode " << code;
      return {};
  }
}

wasm::ValType type_of(char letter) {
  return letter == 'i'   ? wasm::ValType::kI32
         : letter == 'I' ? wasm::ValType::kI64
         : letter == 'f' ? wasm::ValType::kF32
                         : wasm::ValType::kF64;
}

const std::vector<uint64_t>& edge_values(wasm::ValType type) {
  static const std::vector<uint64_t> i32s = {
      0, 1, 2, 7, 31, 32, 0x7f, 0x80, 0x8000, 0x7fffffff, 0x80000000, 0x80000001, 0xdeadbeef, 0xffffffff};
  static const std::vector<uint64_t> i64s = {0,
                                             1,
                                             63,
                                             64,
                                             0x80,
                                             0x7fffffff,
                                             0x80000000,
                                             0xffffffff,
                                             0x100000000,
                                             0xffffffff80000000,
                                             0x7fffffffffffffff,
                                             0x8000000000000000,
                                             0x8000000000000401,
                                             0xfedcba9876543210,
                                             0xffffffffffffffff};
  static const std::vector<uint64_t> f32s = [] {
    std::vector<uint64_t> bits;
    for (const float v : {0.0f,
                          -0.0f,
                          1.0f,
                          -1.0f,
                          0.5f,
                          -0.5f,
                          2.5f,
                          -0.9999999f,
                          3.4028235e38f,
                          1e-45f,
                          2147483520.0f,
                          2147483648.0f,
                          -2147483648.0f,
                          -2147483904.0f,
                          4294967040.0f,
                          4294967296.0f,
                          9223371487098961920.0f,
                          9223372036854775808.0f,
                          -9223372036854775808.0f,
                          18446742974197923840.0f,
                          18446744073709551616.0f,
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::infinity()})
      bits.push_back(std::bit_cast<uint32_t>(v));
    bits.push_back(0x7fc00000);  // canonical NaN
    bits.push_back(0xffa12345);  // signalling, negative
    return bits;
  }();
  static const std::vector<uint64_t> f64s = [] {
    std::vector<uint64_t> bits;
    for (const double v : {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           0.5,
                           1.5,
                           -0.99999999999999989,
                           1.7976931348623157e308,
                           5e-324,
                           2147483647.0,
                           2147483647.9,
                           2147483648.0,
                           -2147483648.0,
                           -2147483648.9,
                           -2147483649.0,
                           4294967295.0,
                           4294967295.9,
                           4294967296.0,
                           9223372036854774784.0,
                           9223372036854775808.0,
                           -9223372036854775808.0,
                           -9223372036854777856.0,
                           18446744073709549568.0,
                           18446744073709551616.0,
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::infinity()})
      bits.push_back(std::bit_cast<uint64_t>(v));
    bits.push_back(0x7ff8000000000000);
    bits.push_back(0xfff4000000012345);
    return bits;
  }();
  switch (type) {
    case wasm::ValType::kI32:
      return i32s;
    case wasm::ValType::kI64:
      return i64s;
    case wasm::ValType::kF32:
      return f32s;
    default:
      return f64s;
  }
}

std::string constant(wasm::ValType type, uint64_t bits) {
  char text[64];
  switch (type) {
    case wasm::ValType::kI32:
      return "(i32.const " + std::to_string(static_cast<int32_t>(bits)) + ")";
    case wasm::ValType::kI64:
      return "(i64.const " + std::to_string(static_cast<int64_t>(bits)) + ")";
    case wasm::ValType::kF32: {
      const float v = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (std::isnan(v))
        std::snprintf(text, sizeof text, "(f32.const %snan:0x%x)", bits >> 31 ? "-" : "",
                      static_cast<uint32_t>(bits) & 0x7fffff);
      else
        std::snprintf(text, sizeof text, "(f32.const %a)", static_cast<double>(v));
      return text;
    }
    default: {
      const double v = std::bit_cast<double>(bits);
      if (std::isnan(v))
        std::snprintf(text, sizeof text, "(f64.const %snan:0x%llx)", bits >> 63 ? "-" : "",
                      static_cast<unsigned long long>(bits & 0xfffffffffffff));
      else
        std::snprintf(text, sizeof text, "(f64.const %a)", v);
      return text;
    }
  }
}

struct Operator {
  uint16_t code;
  std::string name;
  std::vector<wasm::ValType> params;
  wasm::ValType result;
};

std::vector<Operator> operators() {
  std::vector<Operator> all;
  const auto add = [&](uint16_t code) {
    const wasm::OpcodeInfo* info = wasm::find_opcode(code);
    if (!info) return;
    Operator op{code, info->name, {}, wasm::ValType::kI32};
    const std::string signature = info->signature;
    const size_t colon = signature.find(':');
    for (size_t i = 0; i < colon; ++i) op.params.push_back(type_of(signature[i]));
    op.result = type_of(signature[colon + 1]);
    all.push_back(op);
  };
  for (uint16_t code = 0x45; code <= 0xc4; ++code) add(code);
  for (uint16_t code = 0xfc00; code <= 0xfc07; ++code) add(code);
  return all;
}

class OperatorsTest : public BaselineTest {
 protected:
  void check(TestInstance& instance, const std::string& name, const std::vector<Value>& args,
             const Operator& op, uint64_t a, uint64_t b) {
    const Expected expected = evaluate(op.code, a, b);
    const Outcome outcome = instance.call(name, args);
    ASSERT_EQ(outcome.trap, expected.trap) << name << std::hex << " of 0x" << a << ", 0x" << b;
    if (expected.trap != TrapCode::kNone) return;
    const uint64_t got = outcome.results[0].bits;
    if (expected.any_nan) {
      const bool nan = op.result == wasm::ValType::kF32
                           ? std::isnan(std::bit_cast<float>(static_cast<uint32_t>(got)))
                           : std::isnan(std::bit_cast<double>(got));
      ASSERT_TRUE(nan) << name << std::hex << " of 0x" << a << ", 0x" << b << " gave 0x" << got;
    } else {
      ASSERT_EQ(got, expected.bits) << name << std::hex << " of 0x" << a << ", 0x" << b << " gave 0x" << got;
    }
  }

  void run_all() {
    const std::vector<Operator> ops = operators();
    ASSERT_GT(ops.size(), 130u);
    std::string wat = "(module\n";
    for (const Operator& op : ops) {
      std::string params = "(param";
      for (const auto p : op.params) params += std::string(" ") + wasm::to_string(p);
      params += std::string(") (result ") + wasm::to_string(op.result) + ")";
      const std::string gets = op.params.size() == 2 ? "local.get 0 local.get 1 " : "local.get 0 ";
      const auto define = [&](const std::string& suffix, const std::string& body) {
        wat += "(func (export \"" + op.name + suffix + "\") " + params + " " + body + ")\n";
      };
      define("", gets + op.name);
      define("/slots", gets + "(block) " + op.name);
      define("/temporaries", "local.get 0 (block) local.get 0 drop " +
                                 std::string(op.params.size() == 2 ? "local.get 1 (block) " : "") + op.name);
      const bool compares = op.code <= 0x66;
      if (compares) {
        define("/if", gets + op.name + " if (result i32) i32.const 1 else i32.const 0 end");
        define("/if-slots",
               gets + "(block) " + op.name + " if (result i32) i32.const 1 else i32.const 0 end");
        define("/br_if", "(block " + gets + op.name + " br_if 0 i32.const 0 return) i32.const 1");
        define("/eqz-br_if", "(block " + gets + op.name + " i32.eqz br_if 0 i32.const 1 return) i32.const 0");
        define("/select", "i32.const 1 i32.const 0 " + gets + op.name + " select");
        define("/select-f64", "f64.const 1 f64.const 0 " + gets + op.name + " select i32.trunc_f64_s");
        define("/select-i64",
               "i64.const 1 i64.const 0 " + gets + op.name + " i32.eqz i32.eqz select i32.wrap_i64");
      }
      const auto& last = edge_values(op.params.back());
      for (size_t k = 0; k < last.size(); ++k)
        define("/last" + std::to_string(k),
               (op.params.size() == 2 ? "local.get 0 " : "") + constant(op.params.back(), last[k]) + op.name);
      if (op.params.size() == 2) {
        const auto& first = edge_values(op.params[0]);
        for (size_t k = 0; k < first.size(); ++k)
          define("/first" + std::to_string(k), constant(op.params[0], first[k]) + " local.get 1 " + op.name);
      }
    }
    wat += ")";
    auto instance = instantiate(wat);
    ASSERT_TRUE(instance);
    for (const Operator& op : ops) {
      const auto& first = edge_values(op.params[0]);
      const std::vector<uint64_t> none = {0};
      const auto& second = op.params.size() == 2 ? edge_values(op.params[1]) : none;
      std::vector<std::string> variants = {"", "/slots", "/temporaries"};
      if (op.code <= 0x66)
        for (const char* v :
             {"/if", "/if-slots", "/br_if", "/eqz-br_if", "/select", "/select-f64", "/select-i64"})
          variants.push_back(v);
      for (size_t i = 0; i < first.size(); ++i) {
        for (size_t k = 0; k < second.size(); ++k) {
          std::vector<Value> args = {{op.params[0], first[i]}};
          if (op.params.size() == 2) args.push_back({op.params[1], second[k]});
          for (const std::string& v : variants) check(*instance, op.name + v, args, op, first[i], second[k]);
          if (op.params.size() == 2) {
            check(*instance, op.name + "/last" + std::to_string(k), args, op, first[i], second[k]);
            check(*instance, op.name + "/first" + std::to_string(i), args, op, first[i], second[k]);
          } else {
            check(*instance, op.name + "/last" + std::to_string(i), args, op, first[i], 0);
          }
          if (HasFatalFailure()) return;
        }
      }
    }
  }
};

TEST_F(OperatorsTest, EveryNumericOperatorAgreesWithThePlainEvaluator) {
  run_all();
}

TEST_F(OperatorsTest, EveryNumericOperatorAgreesWithoutOptionalInstructionsAndCounters) {
  features_ = {};
  compile_options_.lwp_counting = false;
  run_all();
}

TEST_F(OperatorsTest, SelectChoosesOperandsOfEveryType) {
  auto instance = instantiate(R"((module
    (func (export "i32") (param i32 i32 i32) (result i32) local.get 0 local.get 1 local.get 2 select)
    (func (export "i64") (param i64 i64 i32) (result i64) local.get 0 local.get 1 local.get 2 select)
    (func (export "f32") (param f32 f32 i32) (result f32) local.get 0 local.get 1 local.get 2 select)
    (func (export "f64") (param f64 f64 i32) (result f64) local.get 0 local.get 1 local.get 2 select)
    (func (export "ref") (param externref externref i32) (result externref)
      local.get 0 local.get 1 local.get 2 select (result externref))))");
  EXPECT_EQ(instance->call("i32", {i32(1), i32(2), i32(7)}), returns({i32(1)}));
  EXPECT_EQ(instance->call("i32", {i32(1), i32(2), i32(0)}), returns({i32(2)}));
  EXPECT_EQ(instance->call("i64", {i64(~0ull), i64(2), i32(1)}), returns({i64(~0ull)}));
  EXPECT_EQ(instance->call("i64", {i64(~0ull), i64(2), i32(0)}), returns({i64(2)}));
  EXPECT_EQ(instance->call("f32", {f32_bits(0x7fa00001), f32(2), i32(1)}), returns({f32_bits(0x7fa00001)}));
  EXPECT_EQ(instance->call("f32", {f32(1), f32_bits(0xffa00001), i32(0)}), returns({f32_bits(0xffa00001)}));
  EXPECT_EQ(instance->call("f64", {f64(1), f64(2), i32(1)}), returns({f64(1)}));
  EXPECT_EQ(instance->call("f64", {f64(1), f64_bits(0x7ff4000000000001), i32(0)}),
            returns({f64_bits(0x7ff4000000000001)}));
  EXPECT_EQ(instance->call("ref", {externref(5), externref(9), i32(0)}), returns({externref(9)}));
}

}  // namespace
}  // namespace hindsight::jit::testing
