// Modules of functions that come near the end of their memory, or over it, as text. They have accesses of every
// width, of whose values only a part is needed, or none, or only at times. They have stores and global.set before
// and after, of which nothing but those before may have happened after a trap. All of it is in straight lines or in
// loops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>

namespace hindsight::fuzz {

class EdgeText {
 public:
  EdgeText(uint32_t seed, bool loops) : random_(seed), loops_(loops) {}

  std::string make() {
    pages_ = 1 + below(2);
    end_ = 65536 * pages_;
    std::string text = "(module (memory (export \"memory\") " + std::to_string(pages_) + " " +
                       std::to_string(pages_ + below(2)) +
                       ")\n(global $g (export \"g0\") (mut i32) (i32.const 5)) (global $h (export \"g1\") "
                       "(mut i64) (i64.const 9))\n"
                       "(global $end (export \"g2\") (mut i32) (i32.const " +
                       std::to_string(end_) + "))\n" + data(512, 4) + data(1024, 300) +
                       data(end_ - 300, 300) +
                       "(func $fold (param v128) (result i64) (i64.xor (i64x2.extract_lane 0 (local.get 0)) "
                       "(i64.mul (i64.const 31) "
                       "(i64x2.extract_lane 1 (local.get 0)))))\n";
    for (uint32_t i = 0; i < 16; ++i) text += function(i);
    return text + ")\n";
  }

 private:
  enum Type { kI32, kI64, kF32, kF64, kV128 };
  struct Access {
    const char* name;
    uint32_t bytes;
    Type type;
  };

  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  bool chance(uint32_t of) { return below(of) == 0; }
  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[below(static_cast<uint32_t>(values.size()))];
  }
  template <size_t kCount>
  const Access& pick(const Access (&all)[kCount]) {
    return all[below(kCount)];
  }
  static std::string i32(int64_t value) {
    return "(i32.const " + std::to_string(static_cast<int32_t>(value)) + ")";
  }
  static std::string i64(int64_t value) { return "(i64.const " + std::to_string(value) + ")"; }
  static std::string call(const std::string& operation, const std::string& a) {
    return "(" + operation + " " + a + ")";
  }
  static std::string call(const std::string& operation, const std::string& a, const std::string& b) {
    return "(" + operation + " " + a + " " + b + ")";
  }
  std::string x() { return "(local.get $x)"; }

  // Segments that cover [at, at + bytes).
  std::string data(uint32_t at, uint32_t bytes) {
    std::string text = "(data (i32.const " + std::to_string(at) + ") \"";
    static constexpr char kDigits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < bytes; ++i) {
      // Where the memory ends, for addresses that nobody knows.
      const uint32_t value = at == 512 ? end_ >> 8 * i & 255 : below(256);
      text += {'\\', kDigits[value >> 4], kDigits[value & 15]};
    }
    return text + "\")\n";
  }

  // "offset=N ADDRESS" of an access: the last that fits, over the end by some or all of its bytes, or well inside.
  std::string place(uint32_t bytes) {
    const uint32_t over = chance(3) ? 0 : chance(2) ? 1 + below(bytes) : chance(2) ? below(2 * bytes) : 0;
    return place_at(static_cast<int64_t>(end_) - bytes + over - (chance(5) ? below(40) : 0));
  }
  std::string place_at(int64_t at) {
    int64_t offset = chance(2) ? 0 : pick({1, 4, 8, 60, 4096, 65535, at, at - 3});
    const auto from_end = [&](const std::string& end) {
      return call("i32.sub", end, i32(static_cast<int64_t>(end_) - at + offset));
    };
    std::string address;
    switch (below(8)) {
      case 0:
      case 1:
        address = i32(at - offset);
        break;
      case 2: {
        const int64_t most = pick({1, 3, 7, 15});
        address = call("i32.add", i32(at - offset - below(static_cast<uint32_t>(most) + 1)),
                       call("i32.and", x(), i32(most)));
        break;
      }
      case 3:
        address = from_end("(i32.shl (memory.size) (i32.const 16))");
        break;
      case 4:
        address = from_end("(global.get $end)");
        break;
      case 5:
        address = "(select " + i32(at - offset) + " " + i32(1024) + " " +
                  call("i32.and", x(), i32(pick({1, 2, -1}))) + ")";
        break;
      case 6:
        address = from_end("(i32.load (i32.const 512))");
        break;
      default:
        address = call("i32.add", "(local.get $e)", i32(at - offset - static_cast<int64_t>(end_)));
        break;
    }
    // An address that wraps below zero is beyond every end.
    if (offset == 0) return address;
    return "offset=" + std::to_string(offset) + " " + address;
  }

  static constexpr Access kLoads[] = {
      {"i32.load", 4, kI32},          {"i32.load", 4, kI32},           {"i64.load", 8, kI64},
      {"i64.load", 8, kI64},          {"f32.load", 4, kF32},           {"f64.load", 8, kF64},
      {"v128.load", 16, kV128},       {"v128.load", 16, kV128},        {"i32.load8_s", 1, kI32},
      {"i32.load8_u", 1, kI32},       {"i32.load16_s", 2, kI32},       {"i32.load16_u", 2, kI32},
      {"i64.load8_s", 1, kI64},       {"i64.load16_u", 2, kI64},       {"i64.load32_s", 4, kI64},
      {"i64.load32_u", 4, kI64},      {"v128.load8x8_s", 8, kV128},    {"v128.load16x4_u", 8, kV128},
      {"v128.load32x2_s", 8, kV128},  {"v128.load32_zero", 4, kV128},  {"v128.load64_zero", 8, kV128},
      {"v128.load8_splat", 1, kV128}, {"v128.load16_splat", 2, kV128}, {"v128.load32_splat", 4, kV128},
      {"v128.load64_splat", 8, kV128}};
  static constexpr Access kStores[] = {
      {"i32.store", 4, kI32},  {"i32.store8", 1, kI32},  {"i32.store16", 2, kI32}, {"i64.store", 8, kI64},
      {"i64.store8", 1, kI64}, {"i64.store16", 2, kI64}, {"i64.store32", 4, kI64}, {"f32.store", 4, kF32},
      {"f64.store", 8, kF64},  {"v128.store", 16, kV128}};

  std::string loaded(Type type) {
    if (type == kV128 && chance(4)) {
      static constexpr const char* kLanes[] = {"v128.load8_lane", "v128.load16_lane", "v128.load32_lane",
                                               "v128.load64_lane"};
      const uint32_t size = below(4);
      std::string place = this->place(1u << size);
      return lane(kLanes[size], place, below(16u >> size),
                  chance(2) ? vector_constant() : "(v128.load (i32.const 1040))");
    }
    for (;;) {
      const Access& access = pick(kLoads);
      if (access.type == type) return call(access.name, place(access.bytes));
    }
  }
  // "offset=N" comes before the lane, the address after it.
  static std::string lane(const std::string& name, const std::string& place, uint32_t lane,
                          const std::string& vector) {
    const size_t split = place.rfind("offset=", 0) == 0 ? place.find(' ') + 1 : 0;
    return "(" + name + " " + place.substr(0, split) + std::to_string(lane) + " " + place.substr(split) +
           " " + vector + ")";
  }
  static std::string vector_constant() { return "(v128.const i32x4 1 -2 300 0x7fffff)"; }

  // What needs a part of a loaded value.
  std::string value32() {
    const auto mask = [&] { return i32(pick({255, 1, 0xff00, 0x80, 0xffff, 0x7fffffff, INT32_MIN, 0})); };
    const auto amount = [&] { return i32(pick({8, 16, 24, 31})); };
    switch (below(18)) {
      case 0:
      case 1:
        return call("i32.and", loaded(kI32), mask());
      case 2:
        return call("i32.wrap_i64", loaded(kI64));
      case 3:
        return call("i32.wrap_i64", call(chance(2) ? "i64.shr_u" : "i64.shr_s", loaded(kI64),
                                         i64(pick({8, 24, 32, 40, 56}))));
      case 4:
        return call(chance(2) ? "i32.extend8_s" : "i32.extend16_s", loaded(kI32));
      case 5:
        return call("i32.shl", loaded(kI32), amount());
      case 6:
        return call("i32.shr_u", chance(2) ? call("i32.shl", loaded(kI32), amount()) : loaded(kI32),
                    amount());
      case 7:
        return call("i32.eqz", call("i32.and", loaded(kI32), mask()));
      case 8:
        return call("i32.lt_s", loaded(kI32), i32(0));
      case 9:
        return "(select " + loaded(kI32) + " " + (chance(2) ? i32(5) : loaded(kI32)) + " " + condition() +
               ")";
      case 10:
        return "(if (result i32) " + condition() + " (then " + loaded(kI32) + ") (else " +
               (chance(2) ? i32(77) : loaded(kI32)) + "))";
      case 11: {
        static constexpr const char* kLanes[] = {"i8x16.extract_lane_u", "i16x8.extract_lane_s",
                                                 "i32x4.extract_lane"};
        const uint32_t size = below(3);
        return call(kLanes[size], std::to_string(below(16u >> size)), vector());
      }
      case 12: {  // parts of a word
        const int64_t at = static_cast<int64_t>(end_) - 2 + below(3);
        return call("i32.or", call("i32.load8_u", place_at(at)),
                    call("i32.shl", call("i32.load8_u", place_at(at + (chance(2) ? 1 : -1))), i32(8)));
      }
      case 13:
        return call(chance(2) ? "i32.popcnt" : "i32.ctz", call("i32.and", loaded(kI32), mask()));
      case 14:
        return call("i32.mul", loaded(kI32), i32(pick({0, 256, 65536})));
      case 15:
        return chance(2) ? call("i32.reinterpret_f32", loaded(kF32))
                         : call("i32.trunc_sat_f64_s", loaded(kF64));
      case 16:
        return call(chance(2) ? "v128.any_true" : "i8x16.bitmask", loaded(kV128));
      default:
        return loaded(kI32);
    }
  }
  std::string value64() {
    switch (below(9)) {
      case 0:
        return call("i64.and", loaded(kI64), i64(pick({255, 0xffff, 0xffffffff, 0xff00, 0, INT64_MIN})));
      case 1:
        return call(chance(2) ? "i64.extend32_s" : "i64.extend8_s", loaded(kI64));
      case 2:
        return call("i64.shl", loaded(kI64), i64(pick({8, 32, 48, 63})));
      case 3:
        return call("i64.shr_u", loaded(kI64), i64(pick({8, 32, 56})));
      case 4:
        return call("i64x2.extract_lane", std::to_string(below(2)), vector());
      case 5:
        return call("i64.reinterpret_f64", loaded(kF64));
      case 6:
        return "(select " + loaded(kI64) + " " + i64(5) + " " + condition() + ")";
      case 7:
        return call(chance(2) ? "i64.extend_i32_u" : "i64.extend_i32_s", value32());
      default:
        return loaded(kI64);
    }
  }
  std::string vector() {
    static constexpr const char* kHalves[] = {"i16x8.extend_low_i8x16_u", "i16x8.extend_high_i8x16_s",
                                              "i32x4.extend_low_i16x8_s", "i64x2.extend_high_i32x4_u",
                                              "f64x2.convert_low_i32x4_s"};
    static constexpr const char* kShuffles[] = {
        "i8x16.shuffle 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 3",
        "i8x16.shuffle 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23",
        "i8x16.shuffle 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15",
        "i8x16.shuffle 0 17 2 19 4 21 6 23 8 25 10 27 12 29 14 31"};
    switch (below(7)) {
      case 0:
        return call(kHalves[below(std::size(kHalves))], loaded(kV128));
      case 1:
        return call(kShuffles[below(std::size(kShuffles))], loaded(kV128),
                    chance(2) ? vector_constant() : loaded(kV128));
      case 2:
        return call("v128.and", loaded(kV128),
                    "(v128.const i64x2 " + std::string(chance(2) ? "-1 0" : "0xff 0") + ")");
      case 3:
        return "(v128.bitselect " + loaded(kV128) + " " + vector_constant() + " (v128.const i64x2 0 -1))";
      case 4:
        return "(i32x4.replace_lane " + std::to_string(below(4)) + " " + loaded(kV128) + " " + i32(3) + ")";
      case 5:
        return "(select " + loaded(kV128) + " " + vector_constant() + " " + condition() + ")";
      default:
        return loaded(kV128);
    }
  }
  std::string condition() {
    return chance(3) ? i32(below(2)) : call("i32.and", x(), i32(pick({1, 2, 255, -1})));
  }
  std::string of_type(Type type) {
    switch (type) {
      case kI32:
        return chance(3) ? i32(0x12345678) : value32();
      case kI64:
        return chance(3) ? i64(0x123456789abcdef) : value64();
      case kF32:
        return chance(2) ? "(f32.const 1.5)" : loaded(kF32);
      case kF64:
        return chance(2) ? "(f64.const 2.5)" : loaded(kF64);
      default:
        return chance(2) ? vector_constant() : vector();
    }
  }

  // One that stays inside, and is seen after a trap that follows it.
  std::string effect() {
    switch (below(5)) {
      case 0:
        return call("global.set $g",
                    chance(2) ? i32(below(100)) : call("i32.add", "(global.get $g)", i32(1)));
      case 1:
        return call("global.set $h", "(local.get $r)");
      case 2:
        return call("i32.store", i32(2048 + 4 * below(3)),
                    chance(2) ? i32(below(1000)) : "(i32.wrap_i64 (local.get $r))");
      case 3:
        return call("i64.store8", i32(2048 + below(8)), "(local.get $r)");
      default:
        return call("i64.store", "(i32.add " + i32(2048) + " (i32.and (local.get $x) (i32.const 7)))",
                    "(local.get $r)");
    }
  }
  std::string taken(const std::string& value) {
    return "(local.set $r (i64.add (i64.mul (local.get $r) (i64.const 31)) " + value + "))";
  }
  std::string store() {
    switch (below(8)) {
      case 0: {  // read, changed in a part, and written again
        const std::string place = this->place(4);
        const std::string changed = call(chance(2) ? "i32.or" : "i32.and", call("i32.load", place),
                                         i32(pick({0xff, 0xff00, 0xff0000, INT32_MIN, 77})));
        return call("i32.store", place, changed);
      }
      case 1: {
        const std::string place = this->place(8);
        const std::string changed = call(chance(2) ? "i64.or" : "i64.xor", call("i64.load", place),
                                         i64(pick({0xff, 0xff00, 0xff000000, INT64_MIN})));
        return call(
            "i64.store", place,
            chance(3) ? "(select (i64.load " + place + ") " + i64(5) + " " + condition() + ")" : changed);
      }
      case 2: {  // neighbours one by one: the first ones may fit
        std::string text;
        const uint32_t size = below(4), count = 2 + below(3);
        static constexpr const char* kNames[] = {"i64.store8", "i64.store16", "i64.store32", "i64.store"};
        const int64_t first = static_cast<int64_t>(end_) - (static_cast<int64_t>(below(count + 1)) << size) +
                              (chance(4) ? below(4) : 0);
        const bool down = chance(3), same = chance(2);
        const std::string value = i64(0x1122334455667788);
        for (uint32_t i = 0; i < count; ++i) {
          const int64_t at = first + (static_cast<int64_t>(down ? count - 1 - i : i) << size);
          text += "(" + std::string(kNames[size]) + " " + place_at(at) + " " +
                  (same ? value : i64(pick({0, 1, -1}))) + ")";
        }
        return text;
      }
      case 3: {
        static constexpr const char* kLanes[] = {"v128.store8_lane", "v128.store16_lane", "v128.store32_lane",
                                                 "v128.store64_lane"};
        const uint32_t size = below(4);
        const std::string place = this->place(1u << size);
        return lane(kLanes[size], place, below(16u >> size), chance(2) ? vector_constant() : vector());
      }
      case 4: {
        const uint32_t bytes = static_cast<uint32_t>(pick({0, 1, 2, 4, 8, 16, 24, 33}));
        const std::string at = i32(static_cast<int64_t>(end_) - bytes + pick({0, 0, 1, 3, 100}));
        const std::string length = chance(2) ? i32(bytes) : call("i32.and", x(), i32(63));
        if (chance(2)) return "(memory.fill " + at + " (i32.const 77) " + length + ")";
        return chance(2) ? "(memory.copy " + at + " (i32.const 1024) " + length + ")"
                         : "(memory.copy (i32.const 4096) " + at + " " + length + ")";
      }
      default: {
        const Access& access = pick(kStores);
        // The value into the middle, or any into the end.
        const std::string to = chance(2) ? place(access.bytes) : i32(3072 + below(16));
        return call(access.name, to, of_type(access.type));
      }
    }
  }
  std::string line() {
    switch (below(9)) {
      case 0:
      case 1:
        return effect();
      case 2:
      case 3:
        return store();
      case 4:
        return taken(call("i64.extend_i32_u", value32()));
      case 5:
        return taken(value64());
      case 6:
        return taken(call("call $fold", vector()));
      case 7:
        return call("drop", chance(2) ? value32() : value64());
      default:
        return "(if " + condition() + " (then " + effect() + (chance(2) ? store() : taken(value64())) + "))";
    }
  }

  // Up to the end and perhaps over it, or down from there.
  std::string loop() {
    static constexpr const char* kNames[] = {"8", "16", "32", ""};
    const uint32_t size = below(4), bytes = 1u << size, copies = static_cast<uint32_t>(pick({1, 1, 1, 2, 4}));
    const bool down = chance(4);
    const uint32_t count = 1 + below(chance(2) ? 12 : 150);  // of iterations
    const uint32_t turn = bytes * copies;
    // The last turn ends at the end, or is so many bytes over it.
    const int64_t over =
        pick({0, 0, 1, 4, static_cast<int64_t>(bytes), static_cast<int64_t>(turn), 3 * turn, 10 * turn});
    const int64_t begin = down ? static_cast<int64_t>(end_) - turn + pick({0, 0, 1, bytes})
                               : static_cast<int64_t>(end_) + over - count * static_cast<int64_t>(turn);
    const std::string load_name = std::string("i64.load") + kNames[size] +
                                  (size == 3   ? ""
                                   : chance(2) ? "_s"
                                               : "_u");
    const std::string store_name = std::string("i64.store") + kNames[size];
    const auto near = [&](uint32_t copy) {
      return std::string("offset=") + std::to_string(bytes * copy) + " (local.get $p)";
    };
    const auto far = [&](uint32_t copy) {
      return std::string("offset=") + std::to_string(bytes * copy) + " (local.get $q)";
    };
    const uint32_t kind = below(7), constant = below(1000);
    std::string body;
    for (uint32_t copy = 0; copy < copies; ++copy) {
      const std::string number = call("i64.add", "(local.get $i)", i64(copy));
      switch (kind) {
        case 0:
          body += taken(call(load_name, near(copy)));
          break;
        case 1:
          body += "(local.set $r (i64.add (local.get $r) " + call(load_name, near(copy)) + "))";
          break;
        case 2:
          body += call(store_name, near(copy), i64(constant));
          break;
        case 3:
          body += call(store_name, near(copy), number);
          break;
        case 4:
          body += call(store_name, far(copy), call(load_name, near(copy)));
          break;
        case 5:
          body += call(store_name, near(copy), call("i64.add", call(load_name, far(copy)), number));
          break;
        default:
          body += call(store_name, near(copy), call("i64.xor", call(load_name, near(copy)), i64(constant)));
          break;
      }
    }
    if (chance(4)) body += effect();
    const int64_t step = down ? -static_cast<int64_t>(turn) : turn;
    std::string count_text =
        chance(3) ? call("i32.add", i32(count), call("i32.and", x(), i32(31))) : i32(count);
    return "(local.set $p " +
           (chance(2) ? i32(begin) : call("i32.add", "(local.get $e)", i32(begin - end_))) +
           ") (local.set $q " + i32(pick({4096, 8192, begin - 8, begin + bytes})) + ") (local.set $n " +
           count_text + ") (local.set $i " + i64(static_cast<int64_t>(below(3)) * copies) + ")\n(loop $l " +
           body + "\n(local.set $p (i32.add (local.get $p) " + i32(step) +
           ")) (local.set $q (i32.add (local.get $q) " + i32(step) +
           ")) (local.set $i (i64.add (local.get $i) " + i64(copies) +
           "))\n(br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))\n";
  }

  std::string function(uint32_t index) {
    std::string text = "(func (export \"f" + std::to_string(index) +
                       "\") (param $x i32) (result i64) (local $r i64) (local $e i32) (local $p i32) (local "
                       "$q i32) (local $n i32) (local $i i64)\n"
                       "(local.set $e (i32.load (i32.const 512)))\n";
    // Few that may trap: what comes after the first trap is never seen.
    if (chance(2)) text += effect() + "\n";
    for (uint32_t i = 0, count = 1 + below(4); i < count; ++i)
      text += (loops_ && i == 0 ? loop() : line()) + "\n";
    if (chance(2)) text += effect() + "\n";
    return text + "(local.get $r))\n";
  }

  std::mt19937 random_;
  const bool loops_;
  uint32_t pages_ = 1, end_ = 65536;
};

}  // namespace hindsight::fuzz
