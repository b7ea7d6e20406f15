// Every operator on edge cases, against what the specification says, computed in C++.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/jit/optimizing/optimized.h"

namespace hindsight::jit::testing {
namespace {

std::string binary(std::string_view op, std::string_view type, std::string_view result) {
  std::string name(op), t(type), r(result);
  return "(func (export \"" + name + "\") (param " + t + " " + t + ") (result " + r + ") (" + name +
         " (local.get 0) (local.get 1)))\n";
}
std::string unary(std::string_view op, std::string_view type, std::string_view result) {
  std::string name(op), t(type), r(result);
  return "(func (export \"" + name + "\") (param " + t + ") (result " + r + ") (" + name +
         " (local.get 0)))\n";
}

template <typename U>
Value integer(U value) {
  return sizeof(U) == 4 ? i32(static_cast<uint32_t>(value)) : i64(value);
}

template <typename U>
void check_integers(const std::string& type) {
  using S = std::make_signed_t<U>;
  constexpr U kBits = 8 * sizeof(U);
  struct Op {
    const char* name;
    U (*expected)(U, U);
  };
  const Op ops[] = {
      {"add", [](U a, U b) -> U { return a + b; }},
      {"sub", [](U a, U b) -> U { return a - b; }},
      {"mul", [](U a, U b) -> U { return a * b; }},
      {"and", [](U a, U b) -> U { return a & b; }},
      {"or", [](U a, U b) -> U { return a | b; }},
      {"xor", [](U a, U b) -> U { return a ^ b; }},
      {"shl", [](U a, U b) -> U { return a << (b % kBits); }},
      {"shr_u", [](U a, U b) -> U { return a >> (b % kBits); }},
      {"shr_s", [](U a, U b) -> U { return static_cast<U>(static_cast<S>(a) >> (b % kBits)); }},
      {"rotl", [](U a, U b) -> U { return std::rotl(a, static_cast<int>(b % kBits)); }},
      {"rotr", [](U a, U b) -> U { return std::rotr(a, static_cast<int>(b % kBits)); }},
  };
  const Op divisions[] = {
      {"div_u", [](U a, U b) -> U { return a / b; }},
      {"rem_u", [](U a, U b) -> U { return a % b; }},
      {"div_s", [](U a, U b) -> U { return static_cast<U>(static_cast<S>(a) / static_cast<S>(b)); }},
      {"rem_s",
       [](U a, U b) -> U {
         return static_cast<S>(b) == -1 ? 0 : static_cast<U>(static_cast<S>(a) % static_cast<S>(b));
       }},
  };
  const Op compares[] = {
      {"eq", [](U a, U b) -> U { return a == b; }},
      {"ne", [](U a, U b) -> U { return a != b; }},
      {"lt_u", [](U a, U b) -> U { return a < b; }},
      {"gt_u", [](U a, U b) -> U { return a > b; }},
      {"le_u", [](U a, U b) -> U { return a <= b; }},
      {"ge_u", [](U a, U b) -> U { return a >= b; }},
      {"lt_s", [](U a, U b) -> U { return static_cast<S>(a) < static_cast<S>(b); }},
      {"gt_s", [](U a, U b) -> U { return static_cast<S>(a) > static_cast<S>(b); }},
      {"le_s", [](U a, U b) -> U { return static_cast<S>(a) <= static_cast<S>(b); }},
      {"ge_s", [](U a, U b) -> U { return static_cast<S>(a) >= static_cast<S>(b); }},
  };
  std::string wat = "(module\n";
  for (const Op& op : ops) wat += binary(type + "." + op.name, type, type);
  for (const Op& op : divisions) wat += binary(type + "." + op.name, type, type);
  for (const Op& op : compares) wat += binary(type + "." + op.name, type, "i32");
  for (const char* name : {"clz", "ctz", "popcnt"}) wat += unary(type + "." + name, type, type);
  wat += unary(type + ".eqz", type, "i32") + ")";
  Optimized m(wat);
  constexpr U kLeast = U{1} << (kBits - 1);
  const U values[] = {
      0, 1, 2, 5, 31, 32, 33, 63, 64, kLeast, kLeast - 1, static_cast<U>(-1), static_cast<U>(-7), 0x12345678};
  for (U a : values) {
    EXPECT_EQ(m.call(type + ".clz", {integer(a)}), returns({integer(static_cast<U>(std::countl_zero(a)))}));
    EXPECT_EQ(m.call(type + ".ctz", {integer(a)}), returns({integer(static_cast<U>(std::countr_zero(a)))}));
    EXPECT_EQ(m.call(type + ".popcnt", {integer(a)}), returns({integer(static_cast<U>(std::popcount(a)))}));
    EXPECT_EQ(m.call(type + ".eqz", {integer(a)}), returns({i32(a == 0)}));
    for (U b : values) {
      for (const Op& op : ops)
        EXPECT_EQ(m.call(type + "." + op.name, {integer(a), integer(b)}),
                  returns({integer(op.expected(a, b))}))
            << op.name << " " << a << " " << b;
      for (const Op& op : compares)
        EXPECT_EQ(m.call(type + "." + op.name, {integer(a), integer(b)}),
                  returns({i32(static_cast<uint32_t>(op.expected(a, b)))}))
            << op.name << " " << a << " " << b;
      for (const Op& op : divisions) {
        Outcome expected;
        if (b == 0) {
          expected = traps(TrapCode::kIntegerDivideByZero);
        } else if (std::string_view(op.name) == "div_s" && a == kLeast && b == static_cast<U>(-1)) {
          expected = traps(TrapCode::kIntegerOverflow);
        } else {
          expected = returns({integer(op.expected(a, b))});
        }
        EXPECT_EQ(m.call(type + "." + op.name, {integer(a), integer(b)}), expected)
            << op.name << " " << a << " " << b;
      }
    }
  }
}

TEST(OptimizedOperators, IntegersOf32BitsFollowTheSpecification) {
  check_integers<uint32_t>("i32");
}
TEST(OptimizedOperators, IntegersOf64BitsFollowTheSpecification) {
  check_integers<uint64_t>("i64");
}

template <typename F>
using Bits = std::conditional_t<sizeof(F) == 4, uint32_t, uint64_t>;

template <typename F>
Value number_bits(Bits<F> bits) {
  if constexpr (sizeof(F) == 4)
    return f32_bits(bits);
  else
    return f64_bits(bits);
}

// Any arithmetic NaN is as good as another, but it must be quiet.
template <typename F>
void expect_number(const Outcome& outcome, F expected, const std::string& what) {
  ASSERT_EQ(outcome.trap, TrapCode::kNone) << what;
  const auto bits = static_cast<Bits<F>>(outcome.results[0].bits);
  if (std::isnan(expected)) {
    constexpr Bits<F> kQuiet =
        sizeof(F) == 4 ? Bits<F>{0x7fc00000} : static_cast<Bits<F>>(0x7ff8000000000000);
    EXPECT_EQ(bits & kQuiet, kQuiet) << what;
  } else {
    EXPECT_EQ(bits, std::bit_cast<Bits<F>>(expected)) << what;
  }
}

template <typename F>
F wasm_minimum(F a, F b, bool maximum) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
  if (a == b) return std::signbit(a) == maximum ? b : a;
  return (a < b) == maximum ? b : a;
}

template <typename F>
void check_floats(const std::string& type) {
  using B = Bits<F>;
  std::string wat = "(module\n";
  for (const char* op : {"add", "sub", "mul", "div", "min", "max", "copysign"})
    wat += binary(type + "." + op, type, type);
  for (const char* op : {"eq", "ne", "lt", "gt", "le", "ge"}) wat += binary(type + "." + op, type, "i32");
  for (const char* op : {"abs", "neg", "ceil", "floor", "trunc", "nearest", "sqrt"})
    wat += unary(type + "." + op, type, type);
  // Identities that must not be folded, because they quiet signaling NaNs.
  struct Identity {
    const char* name;
    const char* body;
  };
  const Identity identities[] = {{"mul1", "(T.mul (local.get 0) (T.const 1))"},
                                 {"div1", "(T.div (local.get 0) (T.const 1))"},
                                 {"add0", "(T.add (local.get 0) (T.const -0))"},
                                 {"sub0", "(T.sub (local.get 0) (T.const 0))"},
                                 {"neg1", "(T.mul (T.mul (local.get 0) (T.const -1)) (T.const -1))"}};
  for (const Identity& identity : identities) {
    std::string body = identity.body;
    for (size_t at; (at = body.find('T')) != std::string::npos;) body.replace(at, 1, type);
    wat += "(func (export \"" + std::string(identity.name) + "\") (param " + type + ") (result " + type +
           ") " + body + ")\n";
  }
  Optimized m(wat + ")");
  const F inf = std::numeric_limits<F>::infinity();
  const B quiet = std::bit_cast<B>(std::numeric_limits<F>::quiet_NaN());
  std::vector<B> values;
  for (F v :
       {F(0), F(1), F(0.5), F(1.5), F(2.5), F(3.7), F(1e10), F(8388609.0), F(4503599627370497.0), inf,
        std::numeric_limits<F>::min(), std::numeric_limits<F>::denorm_min(), std::numeric_limits<F>::max()}) {
    values.push_back(std::bit_cast<B>(v));
    values.push_back(std::bit_cast<B>(-v));
  }
  values.push_back(quiet);
  const B signaling = std::bit_cast<B>(inf) | (B{1} << 5);
  values.push_back(signaling);
  for (B a_bits : values) {
    const F a = std::bit_cast<F>(a_bits);
    const Value va = number_bits<F>(a_bits);
    const std::string at = " of " + std::to_string(a);
    expect_number<F>(m.call(type + ".ceil", {va}), std::ceil(a), "ceil" + at);
    expect_number<F>(m.call(type + ".floor", {va}), std::floor(a), "floor" + at);
    expect_number<F>(m.call(type + ".trunc", {va}), std::trunc(a), "trunc" + at);
    expect_number<F>(m.call(type + ".nearest", {va}), std::nearbyint(a), "nearest" + at);
    expect_number<F>(m.call(type + ".sqrt", {va}), std::sqrt(a), "sqrt" + at);
    for (const Identity& identity : identities)
      expect_number<F>(m.call(identity.name, {va}), a, identity.name + at);
    // Bit operators keep every bit of a NaN.
    constexpr B kSign = B{1} << (8 * sizeof(B) - 1);
    EXPECT_EQ(m.call(type + ".abs", {va}), returns({number_bits<F>(a_bits & ~kSign)}));
    EXPECT_EQ(m.call(type + ".neg", {va}), returns({number_bits<F>(a_bits ^ kSign)}));
    for (B b_bits : values) {
      const F b = std::bit_cast<F>(b_bits);
      const Value vb = number_bits<F>(b_bits);
      const std::string both = at + ", " + std::to_string(b);
      expect_number<F>(m.call(type + ".add", {va, vb}), a + b, "add" + both);
      expect_number<F>(m.call(type + ".sub", {va, vb}), a - b, "sub" + both);
      expect_number<F>(m.call(type + ".mul", {va, vb}), a * b, "mul" + both);
      expect_number<F>(m.call(type + ".div", {va, vb}), a / b, "div" + both);
      expect_number<F>(m.call(type + ".min", {va, vb}), wasm_minimum(a, b, false), "min" + both);
      expect_number<F>(m.call(type + ".max", {va, vb}), wasm_minimum(a, b, true), "max" + both);
      EXPECT_EQ(m.call(type + ".copysign", {va, vb}),
                returns({number_bits<F>((a_bits & ~kSign) | (b_bits & kSign))}));
      EXPECT_EQ(m.call(type + ".eq", {va, vb}), returns({i32(a == b)}));
      EXPECT_EQ(m.call(type + ".ne", {va, vb}), returns({i32(a != b)}));
      EXPECT_EQ(m.call(type + ".lt", {va, vb}), returns({i32(a < b)}));
      EXPECT_EQ(m.call(type + ".gt", {va, vb}), returns({i32(a > b)}));
      EXPECT_EQ(m.call(type + ".le", {va, vb}), returns({i32(a <= b)}));
      EXPECT_EQ(m.call(type + ".ge", {va, vb}), returns({i32(a >= b)}));
    }
  }
}

TEST(OptimizedOperators, FloatsFollowTheSpecification) {
  check_floats<float>("f32");
}
TEST(OptimizedOperators, DoublesFollowTheSpecification) {
  check_floats<double>("f64");
}

template <typename F, typename I>
void check_truncation(Optimized& m, const std::string& name, const std::string& saturating, F value) {
  const Value v = number_bits<F>(std::bit_cast<Bits<F>>(value));
  const F whole = std::trunc(value);
  const F above = std::ldexp(F(1), std::numeric_limits<I>::digits);
  const bool too_low = std::is_signed_v<I> ? whole < -above : whole < 0;
  const bool too_high = whole >= above;
  Outcome expected;
  I saturated = 0;
  if (std::isnan(value)) {
    expected = traps(TrapCode::kInvalidConversion);
  } else if (too_low || too_high) {
    expected = traps(TrapCode::kIntegerOverflow);
    saturated = too_low ? std::numeric_limits<I>::min() : std::numeric_limits<I>::max();
  } else {
    saturated = static_cast<I>(whole);
    expected = returns({integer(static_cast<std::make_unsigned_t<I>>(saturated))});
  }
  EXPECT_EQ(m.call(name, {v}), expected) << name << " " << value;
  EXPECT_EQ(m.call(saturating, {v}), returns({integer(static_cast<std::make_unsigned_t<I>>(saturated))}))
      << saturating << " " << value;
}

TEST(OptimizedOperators, TruncationsTrapOrSaturateExactlyAtTheirLimits) {
  std::string wat = "(module\n";
  for (const char* i : {"i32", "i64"})
    for (const char* f : {"f32", "f64"})
      for (const char* s : {"s", "u"})
        for (const char* kind : {".trunc_", ".trunc_sat_"})
          wat += unary(std::string(i) + kind + f + "_" + s, f, i);
  Optimized m(wat + ")");
  std::vector<double> values = {0,
                                -0.0,
                                0.9,
                                -0.9,
                                -1,
                                1.5,
                                -1.5,
                                1e30,
                                -1e30,
                                std::nan(""),
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity()};
  for (const double limit : {0x1p31, 0x1p32, 0x1p63, 0x1p64}) {
    for (const double edge :
         {limit, -limit, limit - 1, -limit - 1, limit - 0.5, -limit - 0.5, std::nextafter(limit, 0),
          static_cast<double>(std::nextafterf(static_cast<float>(limit), 0)),
          static_cast<double>(std::nextafterf(static_cast<float>(-limit), -1e38f))})
      values.push_back(edge);
  }
  for (const double v : values) {
    const auto f = static_cast<float>(v);
    check_truncation<float, int32_t>(m, "i32.trunc_f32_s", "i32.trunc_sat_f32_s", f);
    check_truncation<float, uint32_t>(m, "i32.trunc_f32_u", "i32.trunc_sat_f32_u", f);
    check_truncation<float, int64_t>(m, "i64.trunc_f32_s", "i64.trunc_sat_f32_s", f);
    check_truncation<float, uint64_t>(m, "i64.trunc_f32_u", "i64.trunc_sat_f32_u", f);
    check_truncation<double, int32_t>(m, "i32.trunc_f64_s", "i32.trunc_sat_f64_s", v);
    check_truncation<double, uint32_t>(m, "i32.trunc_f64_u", "i32.trunc_sat_f64_u", v);
    check_truncation<double, int64_t>(m, "i64.trunc_f64_s", "i64.trunc_sat_f64_s", v);
    check_truncation<double, uint64_t>(m, "i64.trunc_f64_u", "i64.trunc_sat_f64_u", v);
  }
}

TEST(OptimizedOperators, DemotingWhatWasPromotedQuietsNaNs) {
  Optimized m(R"((module (func (export "f") (param f32) (result f32) (local f64)
    (local.set 1 (f64.promote_f32 (local.get 0))) (f32.demote_f64 (local.get 1)))))");
  EXPECT_EQ(m.call("f", {f32_bits(0x7fa00000)}).results[0].bits & 0x7fc00000, 0x7fc00000u);
  EXPECT_EQ(m.call("f", {f32(1.5f)}), returns({f32(1.5f)}));
}

TEST(OptimizedOperators, ConversionsRoundAndExtend) {
  Optimized m("(module " + unary("f32.convert_i64_u", "i64", "f32") +
              unary("f64.convert_i64_u", "i64", "f64") + unary("f32.convert_i32_u", "i32", "f32") +
              unary("f64.convert_i32_s", "i32", "f64") + unary("i64.extend_i32_s", "i32", "i64") +
              unary("i64.extend_i32_u", "i32", "i64") + unary("i32.extend8_s", "i32", "i32") +
              unary("i64.extend32_s", "i64", "i64") + unary("i32.wrap_i64", "i64", "i32") +
              unary("i32.reinterpret_f32", "f32", "i32") + ")");
  EXPECT_EQ(m.call("f32.convert_i64_u", {i64(0xffffff8000000001)}), returns({f32(0x1p64f)}));
  EXPECT_EQ(m.call("f64.convert_i64_u", {i64(0xfffffffffffffbff)}), returns({f64(0xfffffffffffff800)}));
  EXPECT_EQ(m.call("f32.convert_i32_u", {i32(0xffffffff)}), returns({f32(0x1p32f)}));
  EXPECT_EQ(m.call("f64.convert_i32_s", {i32(0x80000000)}), returns({f64(-0x1p31)}));
  EXPECT_EQ(m.call("i64.extend_i32_s", {i32(0x80000000)}), returns({i64(0xffffffff80000000)}));
  EXPECT_EQ(m.call("i64.extend_i32_u", {i32(0x80000000)}), returns({i64(0x80000000)}));
  EXPECT_EQ(m.call("i32.extend8_s", {i32(0x1ff80)}), returns({i32(0xffffff80)}));
  EXPECT_EQ(m.call("i64.extend32_s", {i64(0x180000000)}), returns({i64(0xffffffff80000000)}));
  EXPECT_EQ(m.call("i32.wrap_i64", {i64(0x123456789)}), returns({i32(0x23456789)}));
  EXPECT_EQ(m.call("i32.reinterpret_f32", {f32_bits(0x7fa00001)}), returns({i32(0x7fa00001)}));
}

class OptimizedMemory : public ::testing::TestWithParam<BoundsChecks> {
 protected:
  OptimizeRequest request() const {
    OptimizeRequest r;
    r.options.bounds = GetParam();
    return r;
  }
};

TEST_P(OptimizedMemory, ATrapComesBeforeThoseBehindItThoughNothingNeedsTheLoad) {
  Optimized m(R"((module (memory 1)
    (func (export "always") (param i32) (drop (i32.load8_u (local.get 0))) (unreachable))
    (func (export "divide") (param i32 i32) (result i32)
      (drop (i32.xor (i32.load8_u offset=6 (local.get 0)) (i32.rem_s (i32.const 7) (local.get 1))))
      (drop (i32.trunc_f32_s (f32.const 0x1p63))) (i32.const 1))
    (func (export "needed") (param i32 i32) (result i32) (local i32)
      (local.set 2 (i32.load (local.get 0)))
      (if (i32.eqz (local.get 1)) (then (unreachable)))
      (local.get 2))))",
              request());
  EXPECT_EQ(m.call("always", {i32(-1)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("always", {i32(0)}), traps(TrapCode::kUnreachable));
  EXPECT_EQ(m.call("divide", {i32(-1), i32(0)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("divide", {i32(-1), i32(1)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("divide", {i32(0), i32(0)}), traps(TrapCode::kIntegerDivideByZero));
  EXPECT_EQ(m.call("needed", {i32(-1), i32(0)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("needed", {i32(0), i32(0)}), traps(TrapCode::kUnreachable));
}

TEST_P(OptimizedMemory, AccessesExtendAndTrapAtTheEnd) {
  Optimized m(R"((module (memory 1) (data (i32.const 8) "\80\81\82\83\84\85\86\87")
    (func (export "s8") (param i32) (result i32) (i32.load8_s (local.get 0)))
    (func (export "u16") (param i32) (result i64) (i64.load16_u (local.get 0)))
    (func (export "s32") (param i32) (result i64) (i64.load32_s offset=1 (local.get 0)))
    (func (export "far") (param i32) (result i64) (i64.load offset=0xffffffff (local.get 0)))
    (func (export "dead") (param i32) (drop (f64.load (local.get 0))))
    (func (export "deader") (param i32) (drop (i32.add (i32.load8_u (local.get 0)) (i32.load16_s (local.get 0)))))
    (func (export "store") (param i32 i64) (result i64) (i64.store32 offset=4 (local.get 0) (local.get 1)) (i64.load (local.get 0)))
    (func (export "add") (param i32) (result i32) (i32.load (i32.add (local.get 0) (i32.const 8))))))",
              request());
  EXPECT_EQ(m.call("s8", {i32(8)}), returns({i32(0xffffff80)}));
  EXPECT_EQ(m.call("u16", {i32(9)}), returns({i64(0x8281)}));
  EXPECT_EQ(m.call("s32", {i32(8)}), returns({i64(0xffffffff84838281)}));
  EXPECT_EQ(m.call("s32", {i32(65531)}), returns({i64(0)}));
  EXPECT_EQ(m.call("s32", {i32(65532)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("far", {i32(0xffffffff)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("dead", {i32(65528)}), returns({}));
  EXPECT_EQ(m.call("dead", {i32(65529)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("deader", {i32(65535)}), traps(TrapCode::kMemoryOutOfBounds));
  EXPECT_EQ(m.call("store", {i32(100), i64(0x1122334455667788)}), returns({i64(0x5566778800000000)}));
  // The sum wraps to 32 bits before it is an address.
  EXPECT_EQ(m.call("add", {i32(0)}), returns({i32(0x83828180)}));
  EXPECT_EQ(m.call("add", {i32(0xfffffffc)}), returns({i32(0)}));
}

INSTANTIATE_TEST_SUITE_P(Bounds, OptimizedMemory,
                         ::testing::Values(BoundsChecks::kGuardPages, BoundsChecks::kExplicit));

}  // namespace
}  // namespace hindsight::jit::testing
