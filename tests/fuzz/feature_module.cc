#include "tests/fuzz/feature_module.h"

#include <iterator>
#include <string_view>

#include "tests/jit/wasm/module_bytes.h"

namespace hindsight::fuzz {
namespace {

using Bytes = FeatureModule::Bytes;

constexpr uint8_t kI32 = 0x7f, kI64 = 0x7e, kF64 = 0x7c, kEnd = 0x0b, kNoResult = 0x40;

void append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
}
Bytes with_size(const Bytes& contents) {
  Bytes out = wasm::testing::leb(contents.size());
  append(out, contents);
  return out;
}
void section(Bytes& module, uint8_t id, const Bytes& contents) {
  module.push_back(id);
  append(module, with_size(contents));
}
Bytes exported(std::string_view name, uint8_t kind, uint32_t index) {
  Bytes out = wasm::testing::leb(name.size());
  out.insert(out.end(), name.begin(), name.end());
  out.push_back(kind);
  append(out, wasm::testing::leb(index));
  return out;
}

}  // namespace

void FeatureModule::leb(uint64_t value) {
  append(code_, wasm::testing::leb(value));
}
void FeatureModule::signed_leb(int64_t value) {
  for (;;) {
    const auto low = static_cast<uint8_t>(value & 0x7f);
    value >>= 7;
    const bool last = (value == 0 && !(low & 0x40)) || (value == -1 && (low & 0x40));
    code_.push_back(last ? low : low | 0x80);
    if (last) return;
  }
}
void FeatureModule::i32(int32_t value) {
  op({0x41});
  signed_leb(value);
}
void FeatureModule::i64(int64_t value) {
  op({0x42});
  signed_leb(value);
}
void FeatureModule::get(uint32_t local) {
  op({0x20});
  leb(local);
}
void FeatureModule::set(uint32_t local) {
  op({0x21});
  leb(local);
}
void FeatureModule::access(uint8_t align, bool second, uint32_t offset) {
  op({static_cast<uint8_t>(second ? align | 0x40 : align)});
  if (second) op({1});
  leb(offset);
}

// ---- expressions

bool FeatureModule::address(int depth, bool aligned) {
  const bool second = second_ && chance(3);
  const int mask = aligned ? 0x7ff8 : 0x7fff;
  if (second && second64_) {
    expr64(depth);
    i64(mask);
    op({0x83});
  } else {
    expr32(depth);
    i32(mask);
    op({0x71});
  }
  return second;
}

void FeatureModule::load32(int depth) {
  const bool second = address(depth, false);
  constexpr uint8_t kLoads[] = {0x28, 0x2c, 0x2d, 0x2e, 0x2f};
  constexpr uint8_t kAligns[] = {2, 0, 0, 1, 1};
  const uint32_t which = below(5);
  op({kLoads[which]});
  access(chance(2) ? 0 : kAligns[which], second, below(64));
}

void FeatureModule::load64(int depth) {
  const bool second = address(depth, false);
  const uint32_t which = below(7);
  constexpr uint8_t kLoads[] = {0x29, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35};
  op({kLoads[which]});
  access(0, second, below(64));
}

void FeatureModule::atomic32(int depth) {
  const bool second = address(depth, true);
  constexpr uint8_t kUpdates[] = {0x1e, 0x20, 0x21, 0x25, 0x27, 0x28, 0x2c, 0x2e,
                                  0x2f, 0x33, 0x35, 0x3a, 0x3c, 0x41, 0x43};
  constexpr uint8_t kUpdateAligns[] = {2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 2, 0, 2, 0};
  const uint32_t kind = below(4);
  if (kind == 0) {  // a load
    op({0xfe, 0x10});
    return access(2, second, 8 * below(8));
  }
  expr32(depth - 1);
  if (kind == 1) {  // compare and exchange
    expr32(depth - 1);
    op({0xfe, 0x48});
    return access(2, second, 8 * below(8));
  }
  const uint32_t which = below(sizeof kUpdates);
  op({0xfe, kUpdates[which]});
  access(kUpdateAligns[which], second, 8 * below(8));
}

// Results of type 0 (i32) or, `wide`, type 1 (i64). Only inside of few loops: calls are what costs time.
void FeatureModule::call(int depth, bool wide) {
  if (index_ < 2 || loops_ > 1) return wide ? i64(7) : i32(7);
  expr32(depth - 1);
  expr64(depth - 1);
  const uint32_t type = wide ? 1 : 0;
  // Functions of even index have type 0.
  const uint32_t callee = 2 * below(index_ / 2) + type;
  switch (below(3)) {
    case 0:
      op({0x10});
      return leb(callee);
    case 1:
      expr32(depth - 1);
      // Elements of the wrong type come after these: a trap now and then.
      i32(chance(12) ? kTableSize - 1 : 3);
      op({0x71});
      if (wide) {
        i32(4);
        op({0x72});
      }
      op({0x11});
      leb(type);
      return op({0});
    default:
      if (wide) {
        op({0xd2});
        leb(callee);
      } else {
        get(kRef);
      }
      op({0x14});
      return leb(type);
  }
}

void FeatureModule::expr32(int depth) {
  if (depth <= 0) {
    switch (below(4)) {
      case 0: {
        constexpr int32_t kValues[] = {0,   1,   -1,  2,      3,     7,          8,
                                       100, 255, 256, 0x7fff, 65535, 0x7fffffff, INT32_MIN};
        return i32(kValues[below(std::size(kValues))]);
      }
      case 1:
        return op({0x23, 0});
      default:
        return get(chance(5) ? 0 : kI32s + below(4));
    }
  }
  switch (below(16)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      expr32(depth - 1);
      expr32(depth - 1);
      return op({static_cast<uint8_t>(chance(3) ? 0x71 + below(8) : 0x6a + below(3))});
    }
    case 4:  // division by what is not zero, and at times by few different numbers
      expr32(depth - 1);
      expr32(depth - 1);
      if (chance(2)) {
        i32(7);
        op({0x71});
      }
      i32(1);
      op({0x72});
      return op({static_cast<uint8_t>(chance(4) ? 0x6d : 0x6e + 2 * below(2))});
    case 5:
      expr32(depth - 1);
      expr32(depth - 1);
      return op({static_cast<uint8_t>(0x46 + below(10))});
    case 6:
      expr64(depth - 1);
      expr64(depth - 1);
      return op({static_cast<uint8_t>(0x51 + below(10))});
    case 7:
      expr32(depth - 1);
      return op({static_cast<uint8_t>(chance(2) ? 0x67 + below(3) : chance(2) ? 0x45 : 0xc0 + below(2))});
    case 8:
      expr64(depth - 1);
      return op({0xa7});
    case 9:
    case 10:
      return load32(depth - 1);
    case 11:
      expr32(depth - 1);
      expr32(depth - 1);
      expr32(depth - 1);
      return op({0x1b});
    case 12:
      return chance(2) ? atomic32(depth - 1) : load32(depth - 1);
    case 13:
      expr_float(depth - 1);
      return op({0xfc, static_cast<uint8_t>(2 + below(2))});
    case 14:
      return call(depth, false);
    default:
      expr32(depth - 1);
      op({0x04, kI32});
      expr32(depth - 1);
      op({0x05});
      expr32(depth - 1);
      return op({kEnd});
  }
}

void FeatureModule::expr64(int depth) {
  if (depth <= 0) {
    switch (below(4)) {
      case 0: {
        constexpr int64_t kValues[] = {0, 1, -1, 5, 255, 65536, INT64_MAX, INT64_MIN, 0x123456789abcdef};
        return i64(kValues[below(std::size(kValues))]);
      }
      case 1:
        return op({0x23, 1});
      default:
        return get(chance(5) ? 1 : kI64s + below(3));
    }
  }
  switch (below(9)) {
    case 0:
    case 1:
    case 2:
      expr64(depth - 1);
      expr64(depth - 1);
      return op({static_cast<uint8_t>(chance(2) ? 0x83 + below(8) : 0x7c + below(3))});
    case 3:
      expr64(depth - 1);
      expr64(depth - 1);
      if (chance(2)) {
        i64(7);
        op({0x83});
      }
      i64(1);
      return op({0x84, static_cast<uint8_t>(0x80 + 2 * below(2))});
    case 4:
      expr32(depth - 1);
      return op({static_cast<uint8_t>(0xac + below(2))});
    case 5:
      return load64(depth - 1);
    case 6:
      expr64(depth - 1);
      return op({static_cast<uint8_t>(chance(2) ? 0x79 + below(3) : 0xc2 + below(3))});
    case 7:
      return call(depth, true);
    default:
      expr64(depth - 1);
      expr64(depth - 1);
      expr32(depth - 1);
      return op({0x1b});
  }
}

// Never stored as they are: engines choose the bits of a NaN.
void FeatureModule::expr_float(int depth) {
  if (depth <= 0) return get(kF64s + below(2));
  switch (below(4)) {
    case 0:
      expr32(depth - 1);
      return op({static_cast<uint8_t>(0xb7 + below(2))});
    case 1:
      expr_float(depth - 1);
      return op({static_cast<uint8_t>(chance(2) ? 0x9f : 0x9b + below(4))});
    default:
      expr_float(depth - 1);
      expr_float(depth - 1);
      return op({static_cast<uint8_t>(0xa0 + below(6))});
  }
}

// ---- statements

void FeatureModule::store(int depth) {
  const bool wide = chance(3), second = address(depth, false);
  if (wide) {
    expr64(depth);
    constexpr uint8_t kStores[] = {0x37, 0x3c, 0x3d, 0x3e};
    op({kStores[below(4)]});
  } else {
    expr32(depth);
    constexpr uint8_t kStores[] = {0x36, 0x3a, 0x3b};
    op({kStores[below(3)]});
  }
  access(0, second, below(64));
}

void FeatureModule::bulk(int depth) {
  // Lengths below 64, of which hints may mean a few; places below 32 KiB.
  const auto place = [&](bool wide) {
    if (wide) {
      expr64(depth - 1);
      i64(0x7fff);
      op({0x83});
    } else {
      expr32(depth - 1);
      i32(0x7fff);
      op({0x71});
    }
  };
  const auto length = [&](bool wide) {
    expr32(depth - 1);
    i32(chance(2) ? 63 : 7);
    op({0x71});
    if (wide) op({0xad});
  };
  const bool to_second = second_ && chance(2), from_second = second_ && chance(2);
  const bool to64 = to_second && second64_, from64 = from_second && second64_;
  place(to64);
  if (chance(2)) {
    expr32(depth - 1);
    length(to64);
    op({0xfc, 11, to_second});
  } else {
    place(from64);
    length(to64 && from64);
    op({0xfc, 10, to_second, from_second});
  }
}

void FeatureModule::branches(int depth) {
  if (chance(2)) {
    expr32(2);
    op({0x04, kNoResult});
    statements(depth - 1, 2);
    if (chance(2)) {
      op({0x05});
      statements(depth - 1, 2);
    }
    return op({kEnd});
  }
  // A switch.
  op({0x02, kNoResult, 0x02, kNoResult, 0x02, kNoResult});
  expr32(2);
  op({0x0e, 4, 0, 1, 2, 0, static_cast<uint8_t>(below(3)), kEnd});
  statements(depth - 1, 1);
  if (chance(2)) op({0x0c, 1});
  op({kEnd});
  statements(depth - 1, 1);
  op({kEnd});
}

// Something that may throw, and handlers with and without the exception's values.
void FeatureModule::catching(int depth) {
  const auto throw_sometimes = [&] {
    expr32(1);
    i32(3);
    op({0x71, 0x45, 0x04, kNoResult});
    if (chance(2)) {
      expr32(1);
      op({0x08, 0});
    } else {
      expr64(1);
      expr32(1);
      op({0x08, 1});
    }
    op({kEnd});
  };
  if (chance(2)) {
    // The value of tag 0, or -1.
    op({0x02, kI32, 0x02, kNoResult, 0x1f, kNoResult, 2, 0, 0, 1, 2, 0});
    statements(depth - 1, 1);
    throw_sometimes();
    statements(depth - 1, 1);
    op({kEnd, kEnd});
    i32(-1);
    op({kEnd});
  } else {
    // Tag 1 with its two values; others go on to whoever is around.
    op({0x02, 3, 0x1f, kNoResult, 1, 0, 1, 0});
    throw_sometimes();
    statements(depth - 1, 1);
    op({kEnd});
    expr64(1);
    expr32(1);
    op({kEnd});
    set(kI32s + below(4));
    set(kI64s + below(3));
    return;
  }
  set(kI32s + below(4));
}

void FeatureModule::change_table(int depth) {
  switch (below(3)) {
    case 0: {  // another function of the right kind
      const bool wide = chance(2);
      expr32(depth - 1);
      i32(3);
      op({0x71});
      if (wide) {
        i32(4);
        op({0x72});
      }
      op({0xd2});
      leb(2 * below(2) + wide);
      return op({0x26, 0});
    }
    case 1:
      op({0xd2});
      leb(2 * below(2));
      return set(kRef);
    default:  // within the halves
      i32(0);
      i32(1);
      i32(static_cast<int32_t>(1 + below(3)));
      return op({0xfc, 14, 0, 0});
  }
}

void FeatureModule::outer_loop(int depth) {
  const uint32_t counter = kCounters32 + loops_;
  ++loops_;
  i32(0);
  set(counter);
  op({0x02, kNoResult, 0x03, kNoResult});
  statements(depth - 1, 2);
  if (chance(2)) {
    expr32(2);
    i32(15);
    op({0x71, 0x45, 0x0d, 1});
  }
  get(counter);
  i32(1);
  op({0x6a, 0x22});
  leb(counter);
  i32(static_cast<int32_t>(2 + below(9)));
  op({static_cast<uint8_t>(chance(2) ? 0x48 : 0x49), 0x0d, 0, kEnd, kEnd});
  --loops_;
}

// What a compiler makes of a loop over arrays; the innermost kind.
void FeatureModule::array_loop() {
  const bool wide = chance(3), down = chance(4);
  const uint32_t counter = wide ? kCounters64 : kCounters32 + 2;
  const int32_t step = static_cast<int32_t>(1 + (chance(3) ? below(4) : 0));
  const int32_t limit = step * static_cast<int32_t>(1 + below(120));
  const uint32_t accumulator = below(4);
  const auto number = [&](int32_t value) { wide ? i64(value) : i32(value); };
  number(down ? limit : 0);
  set(counter);
  op({0x02, kNoResult, 0x03, kNoResult});
  const uint32_t scale = below(4), count = 1 + below(4), near = below(8000);
  for (uint32_t i = 0; i < count; ++i)
    array_statement(counter, wide, near + (chance(2) ? below(24) : 2048 * (i + 1)),
                    chance(4) ? below(4) : scale, accumulator);
  if (chance(4)) {  // the early way out
    get(kI32s + accumulator);
    i32(static_cast<int32_t>(below(200)));
    op({static_cast<uint8_t>(chance(2) ? 0x46 : 0x4b), 0x0d, 1});
  }
  get(counter);
  number(down ? -step : step);
  op({static_cast<uint8_t>(wide ? 0x7c : 0x6a), 0x22});
  leb(counter);
  number(down ? 0 : limit);
  // Not equal, or a comparison in the direction, of signed or unsigned numbers.
  const uint32_t compare = below(3);
  uint8_t code = wide ? 0x52 : 0x47;
  if (compare == 1) code = static_cast<uint8_t>((wide ? 0x53 : 0x48) + (down ? 2 : 0));
  if (compare == 2) code = static_cast<uint8_t>((wide ? 0x54 : 0x49) + (down ? 2 : 0));
  op({code, 0x0d, 0, kEnd, kEnd});
}

void FeatureModule::array_statement(uint32_t counter, bool wide, uint32_t base, uint32_t scale,
                                    uint32_t accumulator) {
  const bool second = second_ && chance(3), second64 = second && second64_;
  const auto place = [&] {
    get(counter);
    if (wide && !second64) op({0xa7});
    if (!wide && second64) op({0xad});
    if (second64)
      i64(scale);
    else
      i32(static_cast<int32_t>(scale));
    op({static_cast<uint8_t>(second64 ? 0x86 : 0x74)});
    if (chance(2)) {
      if (second64)
        i64(static_cast<int64_t>(base));
      else
        i32(static_cast<int32_t>(base));
      op({static_cast<uint8_t>(second64 ? 0x7c : 0x6a)});
      return 0u;
    }
    return base;
  };
  constexpr uint8_t kLoads[] = {0x28, 0x2c, 0x2d, 0x2e, 0x2f};
  constexpr uint8_t kStores[] = {0x36, 0x3a, 0x3b};
  switch (below(4)) {
    case 0:  // a reduction
    case 1: {
      get(kI32s + accumulator);
      const uint32_t offset = place();
      op({kLoads[below(5)]});
      access(0, second, offset + below(8));
      if (chance(4)) {  // the lesser or greater of them
        const uint32_t other = kI32s + (accumulator + 1) % 4;
        op({0x22});
        leb(other);
        get(kI32s + accumulator);
        get(other);
        op({static_cast<uint8_t>(0x48 + below(4)), 0x1b});
      } else {
        constexpr uint8_t kOperators[] = {0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73};
        op({kOperators[below(6)]});
      }
      return set(kI32s + accumulator);
    }
    case 2: {  // 64 bits
      get(kI64s);
      const uint32_t offset = place();
      op({static_cast<uint8_t>(0x30 + below(6))});
      access(0, second, offset + below(8));
      op({static_cast<uint8_t>(chance(2) ? 0x7c : 0x85)});
      return set(kI64s);
    }
    default: {
      const uint32_t to = place();
      const uint32_t from = place();
      op({kLoads[below(5)]});
      access(0, second, from + below(16));
      expr32(1);
      constexpr uint8_t kOperators[] = {0x6a, 0x6b, 0x6c, 0x71, 0x73, 0x74, 0x76};
      op({kOperators[below(7)]});
      op({kStores[below(3)]});
      return access(0, second, to);
    }
  }
}

void FeatureModule::statement(int depth) {
  if (depth <= 0) {
    if (chance(3)) return store(1);
    expr32(2);
    return set(kI32s + below(4));
  }
  switch (below(13)) {
    case 0:
      expr32(3);
      return set(kI32s + below(4));
    case 1:
      expr64(3);
      return set(kI64s + below(3));
    case 2:
      expr_float(3);
      return set(kF64s + below(2));
    case 3:
      return store(2);
    case 4:
    case 5:
      return branches(depth);
    case 6:
      return loops_ < 2 ? outer_loop(depth) : store(2);
    case 7:
    case 8:
      return array_loop();
    case 9:
      return catching(depth);
    case 10:
      return bulk(2);
    case 11:
      return change_table(2);
    default: {
      const bool wide = chance(2);
      wide ? expr64(2) : expr32(2);
      return op({0x24, static_cast<uint8_t>(wide ? 1 : 0)});
    }
  }
}

void FeatureModule::statements(int depth, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) statement(depth);
}

// ---- the module

Bytes FeatureModule::function(uint32_t index) {
  code_.clear();
  index_ = index;
  loops_ = 0;
  const bool wide = index % 2;
  // Without fuel it returns at once.
  op({0x23, 2, 0x45, 0x04, kNoResult});
  wide ? i64(-3) : i32(-3);
  op({0x0f, kEnd, 0x23, 2, 0x41, 1, 0x6b, 0x24, 2});
  op({0xd2, 0});
  set(kRef);
  statements(3, 3 + below(4));
  if (index >= 2 && chance(4)) {
    expr32(1);
    expr64(1);
    op({0x12});
    leb(2 * below(index / 2) + wide);
  } else {
    wide ? expr64(3) : expr32(3);
  }
  op({kEnd});
  Bytes own{6, 4, kI32, 3, kI64, 2, kF64, 1, 0x63, 0, 3, kI32, 2, kI64};
  append(own, code_);
  return with_size(own);
}

// Catches whatever comes, so that an exception is a result like others.
Bytes FeatureModule::entry(uint32_t callee) {
  code_.clear();
  i32(200);
  op({0x24, 2, 0x02, kNoResult, 0x1f, kNoResult, 1, 2, 0});
  get(0);
  get(1);
  op({0x10});
  leb(callee);
  if (callee % 2)
    op({0x22, 2, 0xa7, 0x24, 0, 0x20, 2, 0x0f, kEnd, kEnd});
  else
    op({0x0f, kEnd, kEnd});
  callee % 2 ? i64(-77) : i32(-77);
  op({kEnd});
  Bytes own{1, 1, kI64};
  append(own, code_);
  return with_size(own);
}

// The checksum of the first 36 KiB of the second memory.
Bytes FeatureModule::checksum() {
  code_.clear();
  if (second_) {
    const bool wide = second64_;
    op({0x03, kNoResult});
    get(3);
    i64(31);
    op({0x7e});
    get(2);
    if (wide) op({0xad});
    op({0x29});
    access(0, true, 0);
    op({0x85});
    set(3);
    get(2);
    i32(8);
    op({0x6a, 0x22, 2});
    i32(36864);
    op({0x49, 0x0d, 0, kEnd});
  }
  get(3);
  op({kEnd});
  Bytes own{2, 1, kI32, 1, kI64};
  append(own, code_);
  return with_size(own);
}

// Something to work on, here and there in the first 32 KiB of each memory.
Bytes FeatureModule::data() {
  const uint32_t memories = second_ ? 2 : 1, count = 24 * memories;
  Bytes segments = wasm::testing::leb(count);
  for (uint32_t i = 0; i < count; ++i) {
    const bool second = i % memories;
    code_.clear();
    if (second)
      op({2, 1});
    else
      op({0});
    const auto at = static_cast<int32_t>(below(0x7f00));
    if (second && second64_)
      i64(at);
    else
      i32(at);
    op({kEnd});
    append(segments, code_);
    Bytes bytes;
    for (uint32_t k = 0; k < 250; ++k) bytes.push_back(static_cast<uint8_t>(chance(4) ? 0 : below(256)));
    append(segments, with_size(bytes));
  }
  return segments;
}

Bytes FeatureModule::make() {
  second_ = !chance(3);
  second64_ = second_ && chance(2);
  Bytes module{0x00, 'a', 's', 'm', 1, 0, 0, 0};
  // (i32 i64) -> i32, (i32 i64) -> i64, () -> (), () -> (i64 i32), (i32) -> (), (i64 i32) -> ()
  section(module, 1, {6, 0x60, 2, kI32, kI64, 1,    kI32, 0x60, 2,    kI32, kI64, 1, kI64, 0x60, 0,
                      0, 0x60, 0, 2,    kI64, kI32, 0x60, 1,    kI32, 0,    0x60, 2, kI64, kI32, 0});
  const uint32_t entries = kFunctions + 1, all = kFunctions + 1 + entries + 1;
  Bytes types = wasm::testing::leb(all);
  for (uint32_t i = 0; i <= kFunctions; ++i) types.push_back(i % 2);
  for (uint32_t i = 0; i < entries; ++i) types.push_back(i % 2);
  types.push_back(1);
  section(module, 3, types);
  section(module, 4, {1, 0x70, 1, kTableSize, kTableSize});
  Bytes memories{static_cast<uint8_t>(second_ ? 2 : 1), 1, 1, 1};
  if (second_) append(memories, {static_cast<uint8_t>(second64_ ? 5 : 1), 1, 1});
  section(module, 5, memories);
  section(module, 13, {2, 0, 4, 0, 5});
  section(module, 6, {3, kI32, 1, 0x41, 5, kEnd, kI64, 1, 0x42, 9, kEnd, kI32, 1, 0x41, 0, kEnd});
  Bytes exports = wasm::testing::leb(entries + 2);
  append(exports, exported("memory", 2, 0));
  for (uint32_t i = 0; i < entries; ++i)
    append(exports, exported(std::string_view(&"abcdefgh"[i], 1), 0, kFunctions + 1 + i));
  append(exports, exported("checksum", 0, all - 1));
  section(module, 7, exports);
  // Four functions of type 0, then four of type 1. All of them are below those that call through the
  // table: no recursion that fuel would not end.
  section(module, 9, {1, 0, 0x41, 0, kEnd, 8, 0, 2, 0, 2, 1, 3, 1, 3});
  Bytes bodies = wasm::testing::leb(all);
  for (uint32_t i = 0; i <= kFunctions; ++i) append(bodies, function(i));
  for (uint32_t i = 0; i < entries; ++i) append(bodies, entry(i));
  append(bodies, checksum());
  section(module, 10, bodies);
  section(module, 11, data());
  return module;
}

}  // namespace hindsight::fuzz
