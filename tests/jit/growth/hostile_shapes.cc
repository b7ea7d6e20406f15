// Functions that are small as WebAssembly and ask a compiler for minutes, or for a deep native stack. They do so if it
// walks along the operands of values or compares accesses in pairs. They also do if it asks of each value what is known
// of all before it.
#include "tests/jit/growth/code_bytes.h"
#include "tests/jit/growth/shapes.h"

namespace hindsight::jit::testing {
namespace {

using Unit = std::function<void(Code&, uint32_t)>;

// Locals of every type, four each: i32 at 2, v128 at 6, i64 at 10, f64 at 14.
constexpr uint32_t kInt = 2, kVector = 6, kWide = 10, kDouble = 14;

// Numbers that nobody knows, in all locals.
void begin(Code& c) {
  for (uint32_t k = 0; k < 4; ++k) {
    c.get(0).op({0x28, 2}).leb(64 + 4 * k).set(kInt + k);
    c.get(0).op({0xfd, 0, 4}).leb(128 + 16 * k).set(kVector + k);
    c.get(0).op({0x29, 3}).leb(256 + 8 * k).set(kWide + k);
    c.get(0).op({0x2b, 3}).leb(320 + 8 * k).set(kDouble + k);
  }
}

Function some_locals() {
  Function f;
  f.locals = f.vectors = f.wides = f.doubles = 4;
  return f;
}

// What the function computed, to where it counts.
void keep(Code& c) {
  c.i32(0).get(kInt).op({0x36, 2, 0});
  c.i32(16).get(kWide).op({0x37, 3, 0});
  c.i32(24).get(kDouble).op({0x39, 3, 0});
  c.i32(32).get(kVector).op({0xfd, 11, 4, 0});
}

void i64(Code& c, int64_t value) {
  const Bytes number = Code().i32(value).bytes();
  c.op({0x42}).add({number.begin() + 1, number.end()});
}

Bytes straight(uint32_t n, const Unit& unit) {
  Code code;
  begin(code);
  code.times(n, unit);
  keep(code);
  return function_of(some_locals(), code.bytes());
}

// The same in a loop, so that every value is carried around it.
Bytes in_a_loop(uint32_t n, const Unit& unit) {
  Code code;
  begin(code);
  code.op({0x03, kNoResult}).times(n, unit);
  code.get(0).i32(1).op({0x6b, 0x22, 0, 0x0d, 0, kEnd});
  keep(code);
  return function_of(some_locals(), code.bytes());
}

Bytes in_nested_loops(uint32_t n, uint32_t depth, const Unit& unit) {
  Code code;
  begin(code);
  code.times(depth, [](Code& c, uint32_t) { c.op({0x03, kNoResult}); });
  code.times(n, unit);
  code.times(depth, [](Code& c, uint32_t) { c.get(0).i32(1).op({0x6b, 0x22, 0, 0x0d, 0, kEnd}); });
  keep(code);
  return function_of(some_locals(), code.bytes());
}

// n numbers loaded into locals, then added up: all of them live at once, then one sum of all.
Bytes sum_of_many(uint32_t n, bool by_pairs) {
  Function f;
  f.wides = n + 1;
  Code code;
  code.times(n, [](Code& c, uint32_t i) { c.i32(0).op({0x29, 3}).leb(8 * i).set(2 + i); });
  if (by_pairs) {
    for (uint32_t step = 1; step < n; step *= 2)
      for (uint32_t i = 0; i + step < n; i += 2 * step)
        code.get(2 + i).get(2 + i + step).op({0x7c}).set(2 + i);
    code.i32(0).get(2).op({0x37, 3, 0});
  } else {
    code.times(n, [n](Code& c, uint32_t i) { c.get(2 + n).get(2 + i).op({0x7c}).set(2 + n); });
    code.i32(0).get(2 + n).op({0x37, 3, 0});
  }
  return function_of(f, code.bytes());
}

// One function for each of n numbers: a block of its own, left to the end.
Bytes switch_of_bodies(uint32_t n) {
  Code code;
  begin(code);
  code.op({0x02, kNoResult});
  code.times(n, [](Code& c, uint32_t) { c.op({0x02, kNoResult}); });
  code.get(0).op({0x0e}).leb(n);
  code.times(n + 1, [](Code& c, uint32_t i) { c.leb(i); });
  code.times(n, [n](Code& c, uint32_t i) {
    c.op({kEnd}).get(kInt).i32(7 * i + 1).op({0x6a}).i32(i).op({0x73}).set(kInt).op({0x0c}).leb(n - i - 1);
  });
  code.op({kEnd});
  keep(code);
  return function_of(some_locals(), code.bytes());
}

}  // namespace

std::vector<Shape> hostile_shapes() {
  std::vector<Shape> all;
  const auto add = [&](const char* name, std::function<Bytes(uint32_t)> make, uint32_t n) {
    all.push_back({name, std::move(make), 0, 0, n});
  };
  const auto chain = [&](const char* name, Unit unit, uint32_t n) {
    add(
        name, [unit](uint32_t times) { return straight(times, unit); }, n);
  };
  constexpr uint32_t n = 10'000;
  chain(
      "ChainOfShiftAndXor",
      [](Code& c, uint32_t i) {
        c.get(kWide);
        i64(c, i % 7 + 1);
        c.op({0x86}).get(0).op({0x29, 3}).leb(8 * i).op({0x85}).set(kWide);
      },
      n);
  chain(
      "ChainOfXorAndAdd",
      [](Code& c, uint32_t i) { c.get(kInt).i32(i * 77 + 1).op({0x73}).get(i % 2).op({0x6a}).set(kInt); }, n);
  chain(
      "ChainOfAndAndOr",
      [](Code& c, uint32_t i) { c.get(kInt).get(i % 2).op({0x71}).i32(1 << (i % 31)).op({0x72}).set(kInt); },
      n);
  chain(
      "ChainOfComparesAndAnd",
      [](Code& c, uint32_t i) {
        c.get(kInt).get(i % 2).i32(i).op({static_cast<uint8_t>(0x46 + i % 10), 0x71}).set(kInt);
      },
      n);
  chain(
      "ChainOfComparesOfCompares",
      [](Code& c, uint32_t i) { c.get(kInt).get(i % 2).op({static_cast<uint8_t>(0x46 + i % 10)}).set(kInt); },
      n);
  chain(
      "ChainOfSelects",
      [](Code& c, uint32_t i) {
        c.get(kInt).get(i % 2).get(kInt).i32(i).op({0x48, 0x1b}).set(kInt);
      },
      n);
  chain(
      "ChainOfSelectsOfSums",
      [](Code& c, uint32_t i) {
        c.get(kInt).i32(i).op({0x6a}).get(i % 2).get(kInt).get(1 - i % 2).op({0x48, 0x1b}).set(kInt);
      },
      n);
  chain(
      "ChainOfShifts",
      [](Code& c, uint32_t i) {
        c.get(kInt).get(i % 2).op({static_cast<uint8_t>(0x74 + i % 5)}).get(0).op({0x6a}).set(kInt);
      },
      n);
  chain(
      "ChainOfProducts",
      [](Code& c, uint32_t i) {
        c.get(kWide).get(kWide);
        i64(c, 2 * i + 3);
        c.op({0x7e, 0x7c}).set(kWide);
      },
      n);
  chain(
      "ChainOfSquares",
      [](Code& c, uint32_t i) {
        c.get(kWide).get(kWide).op({0x7e});
        i64(c, i);
        c.op({0x7c}).set(kWide);
      },
      n);
  chain(
      "ChainOfDoublings",
      [](Code& c, uint32_t) { c.get(kInt).get(kInt).op({0x6a}).get(0).op({0x73}).set(kInt); }, n);
  chain(
      "ChainOfQuotients",
      [](Code& c, uint32_t i) {
        c.get(kInt).get(0).op({static_cast<uint8_t>(0x6d + i % 4)}).i32(i).op({0x6a}).set(kInt);
      },
      1'500);
  chain(
      "ChainOfQuotientsByConstants",
      [](Code& c, uint32_t i) {
        c.get(kWide);
        i64(c, 2 * i + 3);
        c.op({static_cast<uint8_t>(0x7f + i % 4)});
        i64(c, i);
        c.op({0x7c}).set(kWide);
      },
      n);
  chain(
      "ChainOfConversions",
      [](Code& c, uint32_t i) {
        c.get(kWide).op({0xa7, static_cast<uint8_t>(0xc0 + i % 2), 0xac}).get(kWide).op({0x7c}).set(kWide);
      },
      n);
  chain(
      "ChainOfDoubleSums",
      [](Code& c, uint32_t i) {
        c.get(kDouble).get(kDouble + 1 + i % 3).op({static_cast<uint8_t>(0xa0 + i % 4)}).set(kDouble);
      },
      n);
  chain(
      "ChainOfDoubleMinimums",
      [](Code& c, uint32_t i) {
        c.get(kDouble).get(kDouble + 1 + i % 3).op({static_cast<uint8_t>(0xa4 + i % 2)}).set(kDouble);
      },
      n);
  chain(
      "ChainOfVectorSums",
      [](Code& c, uint32_t i) {
        c.get(kVector)
            .get(kVector + 1 + i % 3)
            .op({0xfd, 0xae, 1})
            .get(kVector + 1)
            .op({0xfd, 0x51})
            .set(kVector);
      },
      n);
  chain(
      "ChainOfVectorShuffles",
      [](Code& c, uint32_t i) {
        c.get(kVector).get(kVector + 1 + i % 3).op({0xfd, 13});
        c.times(16, [i](Code& lanes, uint32_t k) { lanes.op({static_cast<uint8_t>((5 * k + i) % 32)}); });
        c.set(kVector);
      },
      4'000);
  chain(
      "ChainOfVectorLanes",
      [](Code& c, uint32_t i) {
        c.get(kVector).get(kVector).op({0xfd, 0x1b, static_cast<uint8_t>(i % 4)}).i32(i).op({0x6a});
        c.op({0xfd, 0x1c, static_cast<uint8_t>((i + 1) % 4)}).set(kVector);
      },
      n);
  chain(
      "ChainOfLoads",
      [](Code& c, uint32_t i) {
        c.get(kInt).op({0x28, 2}).leb(4 * (i % 64)).set(kInt);
      },
      n);
  chain(
      "LoadsAndStoresInOneBlock",
      [](Code& c, uint32_t i) {
        c.get(i % 2).get(1 - i % 2).op({0x28, 2}).leb(12 * (i * 7 % 1000)).op({0x36, 2}).leb(4 * i);
      },
      4'000);
  chain(
      "LoadsAndStoresOfBytes",
      [](Code& c, uint32_t i) {
        c.get(0).get(1).op({0x2d, 0}).leb(i).op({0x3a, 0}).leb(i + 1);
      },
      4'000);
  chain(
      "StoresOfOneValue",
      [](Code& c, uint32_t i) {
        c.get(0).get(1).op({0x36, 2}).leb(4 * i);
      },
      n);
  chain(
      "StoresOfZero",
      [](Code& c, uint32_t i) {
        c.get(0).i32(0).op({0x3a, 0}).leb(i);
      },
      n);
  chain(
      "StoresAtComputedPlaces",
      [](Code& c, uint32_t i) {
        c.get(0).get(1).i32(i).op({0x6c, 0x6a}).get(1).op({0x36, 2, 0});
      },
      4'000);
  add(
      "SumOfManyLoads", [](uint32_t m) { return sum_of_many(m, false); }, 1'900);
  add(
      "SumOfManyLoadsByPairs", [](uint32_t m) { return sum_of_many(m, true); }, 1'900);
  chain(
      "GlobalsAndCalls",
      [](Code& c, uint32_t i) {
        c.op({0x23, 0}).get(kInt).op({0x6a, 0x24, 0}).get(kInt).op({0x10, 0}).i32(i).op({0x6a}).set(kInt);
      },
      2'000);
  add("SwitchOfManyBodies", switch_of_bodies, 700);
  chain(
      "DiamondsOneAfterTheOther",
      [](Code& c, uint32_t i) {
        c.get(kInt).i32(i).op({0x46, 0x04, kNoResult}).get(kInt).i32(2 * i + 1).op({0x6a}).set(kInt);
        c.op({0x05}).get(kInt).i32(3 * i).op({0x73}).set(kInt).op({kEnd});
      },
      1'000);
  chain(
      "DiamondsOfFourValues",
      [](Code& c, uint32_t i) {
        c.get(0).i32(i).op({0x71, 0x04, kNoResult});
        c.times(4, [i](Code& d, uint32_t k) {
          d.get(kInt + k).get(kInt + (k + 1 + i % 3) % 4).op({0x6a}).set(kInt + k);
        });
        c.op({kEnd});
      },
      1'000);
  const Unit mixed = [](Code& c, uint32_t i) {
    c.get(kInt).i32(i * 77 + 1).op({0x73}).get(kInt + 1).op({0x6a}).set(kInt);
    c.get(kInt + 1).get(kInt).op({0x71}).i32(i % 31).op({0x77}).set(kInt + 1);
    c.get(kInt + 2).get(kInt + 2).get(kInt).get(kInt + 1).get(kInt + 3).op({0x48, 0x1b, 0x6a}).set(kInt + 2);
    c.get(kInt + 3).get(kInt + 2).op({0x6c}).i32(i).op({0x6b}).set(kInt + 3);
  };
  chain("FourChainsThroughEachOther", mixed, 2'500);
  add(
      "LoopOfFourChains", [mixed](uint32_t m) { return in_a_loop(m, mixed); }, 2'500);
  add(
      "NestedLoopsOfFourChains", [mixed](uint32_t m) { return in_nested_loops(m, 8, mixed); }, 2'500);
  const Unit accesses = [](Code& c, uint32_t i) {
    c.get(kInt).get(0).op({0x28, 2}).leb(4 * i).op({0x6a}).set(kInt);
    if (i % 4 == 3) c.get(1).get(kInt).op({0x36, 2}).leb(4 * i);
  };
  chain("SumsOfLoadsBetweenStores", accesses, 5'000);
  add(
      "LoopOfLoadsAndStores", [accesses](uint32_t m) { return in_a_loop(m, accesses); }, 5'000);
  add(
      "NestedLoopsOfLoadsAndStores", [accesses](uint32_t m) { return in_nested_loops(m, 8, accesses); },
      2'500);
  return all;
}

}  // namespace hindsight::jit::testing
