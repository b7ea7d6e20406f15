#include "tests/jit/growth/shapes.h"

#include <algorithm>

#include "tests/jit/growth/code_bytes.h"

namespace hindsight::jit::testing {
namespace {

// `open` n times, `inside`, and as many ends.
Bytes nested(uint32_t n, const std::function<void(Code&, uint32_t)>& open, const Bytes& close = {kEnd}) {
  Code code;
  code.times(n, open);
  code.times(n, [&](Code& c, uint32_t) { c.add(close); });
  return function_of({}, code.bytes());
}

// A loop that adds up an array from the start of memory on: counter local 0, sum local 1.
void counted_loop(Code& c) {
  c.i32(0).set(0);
  c.op({0x03, kNoResult}).get(1).get(0).op({0x28, 2, 0}).op({0x6a}).set(1);
  c.get(0).i32(4).op({0x6a, 0x22, 0}).i32(400).op({0x48, 0x0d, 0, kEnd});
}

// Every local used in every iteration of a loop of n blocks: what asks for n * n phis.
Bytes locals_across_blocks(uint32_t n) {
  Code code;
  code.op({0x03, kNoResult});
  code.times(n, [n](Code& c, uint32_t i) {
    c.get(0)
        .op({0x04, kNoResult})
        .get(2 + i)
        .get(2 + (i * 7 + 1) % n)
        .op({0x6a})
        .set(2 + (i * 3 + 2) % n)
        .op({kEnd});
  });
  code.get(1).op({0x0d, 0, kEnd});
  code.times(n, [](Code& c, uint32_t i) { c.get(1).get(2 + i).op({0x6a}).set(1); });
  code.get(1).op({0x24, 0});
  Function f;
  f.locals = n;
  return function_of(f, code.bytes());
}

Bytes branch_tables(uint32_t tables, uint32_t targets) {
  Code code;
  code.times(tables, [targets](Code& c, uint32_t) {
    c.op({0x02, kNoResult, 0x02, kNoResult}).get(0).op({0x0e}).leb(targets);
    c.times(targets, [](Code& t, uint32_t i) { t.op({static_cast<uint8_t>(i % 2)}); });
    c.op({1, kEnd, kEnd});
  });
  return function_of({}, code.bytes());
}

// A branch table whose targets are n blocks around it.
Bytes dispatch(uint32_t n) {
  Code code;
  code.op({0x03, kNoResult});
  code.times(n, [](Code& c, uint32_t) { c.op({0x02, kNoResult}); });
  code.get(0).op({0x0e}).leb(n - 1);
  code.times(n, [](Code& c, uint32_t i) { c.leb(i); });
  code.times(n, [n](Code& c, uint32_t i) {
    c.op({kEnd}).get(1).i32(i).op({0x6a}).set(1).get(1).op({0x0d}).leb(n - 1 - i);
  });
  code.op({kEnd});
  return function_of({}, code.bytes());
}

Bytes module_of_functions(uint32_t n) {
  const Bytes one = body(Code().get(0).get(1).op({0x6a, 0x24, 0}).bytes());
  return module(
      {section(1, vec({func_type({kI32, kI32}, {})})), section(3, many(n, [](uint32_t) { return Bytes{0}; })),
       section(6, vec({{kI32, 1, 0x41, 0, kEnd}})), section(10, many(n, [&](uint32_t) { return one; }))});
}

Bytes distinct_types(uint32_t n) {
  return module({section(1, many(n, [](uint32_t i) {
                           Bytes params;
                           for (uint32_t rest = i + 1; rest != 0; rest /= 4)
                             params.push_back(static_cast<uint8_t>(kI32 - rest % 4));
                           return func_type(params, {});
                         }))});
}

Bytes named(uint32_t i) {
  return text("name" + std::to_string(i));
}

Bytes imports(uint32_t n) {
  return module({section(1, vec({func_type({}, {})})), section(2, many(n, [](uint32_t i) {
                                                                 return text("env") + named(i) + Bytes{0, 0};
                                                               }))});
}

Bytes exports(uint32_t n) {
  return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                 section(7, many(n,
                                 [](uint32_t i) {
                                   return named(i) + Bytes{0, 0};
                                 })),
                 section(10, vec({body({})}))});
}

Bytes globals(uint32_t n) {
  return module(
      {section(6, many(n, [](uint32_t i) {
                 return i % 2 ? Bytes{kI32, 0, 0x41, 1, kEnd} : Bytes{kI32, 0, 0x41, 1, 0x41, 2, 0x6a, kEnd};
               }))});
}

Bytes data_segments(uint32_t n) {
  return module({section(5, vec({{0, 1}})),
                 section(11, many(n, [](uint32_t) { return Bytes{0, 0x41, 0, kEnd, 1, 7}; }))});
}

Bytes element_segments(uint32_t n) {
  return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                 section(9, many(n,
                                 [](uint32_t) {
                                   return Bytes{1, 0, 1, 0};
                                 })),
                 section(10, vec({body({})}))});
}

Bytes elements(uint32_t n) {
  return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})),
                 section(9, vec({Bytes{1, 0} + many(n, [](uint32_t) { return Bytes{0}; })})),
                 section(10, vec({body({})}))});
}

Bytes names(uint32_t n) {
  Bytes out = module_of_functions(n);
  const Bytes functions = many(n, [](uint32_t i) { return leb(i) + named(i); });
  const Bytes locals = many(n, [](uint32_t i) {
    return leb(i) + vec({Bytes{0} + text("a"), Bytes{1} + text("b")});
  });
  append(out, section(0, text("name") + section(1, functions) + section(2, locals)));
  return out;
}

Bytes try_tables(uint32_t n, bool inside_each_other) {
  Code code;
  const auto open = [](Code& c, uint32_t) {
    c.op({0x02, kNoResult, 0x1f, kNoResult, 1, 0, 0, 0}).get(0).op({0x10, 0, 0x1a});
  };
  if (inside_each_other) {
    code.times(n, open).times(n, [](Code& c, uint32_t) { c.op({kEnd, kEnd}); });
  } else {
    code.times(n, [&](Code& c, uint32_t i) {
      open(c, i);
      c.op({kEnd, kEnd});
    });
  }
  return function_of({}, code.bytes());
}

// Blocks with n results, left by several branches.
Bytes tall_blocks(uint32_t n) {
  Code code;
  code.times(n, [](Code& c, uint32_t) { c.get(0); }).op({0x02, 3});
  code.times(4, [](Code& c, uint32_t) { c.get(1).op({0x0d, 0}); });
  code.op({kEnd}).times(n - 1, [](Code& c, uint32_t) { c.op({0x6a}); }).set(1);
  return function_of({}, code.bytes(), n);
}

Bytes recursive_with_arguments(uint32_t n) {
  const Bytes tall(n, kI32);
  Code code;
  code.times(n, [](Code& c, uint32_t i) { c.get(i); }).op({0x10, 0});
  const Bytes own = Bytes{0} + code.bytes() + Bytes{kEnd};
  return module({section(1, vec({func_type(tall, tall)})), section(3, vec({{0}})),
                 section(10, vec({leb(own.size()) + own}))});
}

Bytes v128_const(uint32_t i) {
  Bytes out{0xfd, 12};
  for (uint32_t k = 0; k < 16; ++k) out.push_back(static_cast<uint8_t>(k < 4 ? i >> (8 * k) : 17 * k));
  return out;
}

std::vector<Shape> make_shapes() {
  Function with_locals;
  with_locals.locals = 100;
  Function with_vectors;
  with_vectors.vectors = 2;
  Function with_result;
  with_result.results = {kI32};
  std::vector<Shape> all = {
      {"Functions", module_of_functions, 20'000, 2'000, 20},
      // So many that four times as many (2 MB) are in a core's own cache still. With 10,000 they are not, and where others
      // fill the cache that cores share, four times as many took 18 times as long.
      {"Types", distinct_types, 2'500, 0, 0},
      {"Imports", imports, 10'000, 0, 0},
      {"Exports", exports, 10'000, 0, 0},
      {"Globals", globals, 20'000, 0, 0},
      {"DataSegments", data_segments, 20'000, 0, 0},
      {"ElementSegments", element_segments, 20'000, 0, 0},
      {"Elements", elements, 100'000, 0, 0},
      {"Names", names, 10'000, 0, 0},
  };
  const auto function = [&](const char* name, std::function<Bytes(uint32_t)> make, uint32_t decoded,
                            uint32_t baseline, uint32_t optimized) {
    all.push_back({name, std::move(make), decoded, baseline, optimized});
  };
  function(
      "Nops", [](uint32_t n) { return plain(n, [](Code& c, uint32_t) { c.op({0x01}); }); }, 200'000, 100'000,
      0);
  function(
      "StraightCode",
      [](uint32_t n) {
        return plain(n, [](Code& c, uint32_t i) { c.get(0).get(1).op({0x6a}).i32(i).op({0x73}).set(i % 2); });
      },
      50'000, 20'000, 2'000);
  function(
      "MemoryAccesses",
      [](uint32_t n) {
        return plain(n, [](Code& c, uint32_t i) {
          c.get(0).get(1).op({0x28, 2}).leb(4 * i).i32(3).op({0x6a, 0x36, 2}).leb(4 * i + 1);
        });
      },
      50'000, 5'000, 500);
  function(
      "GlobalsInCode",
      [](uint32_t n) { return plain(n, [](Code& c, uint32_t) {
                         c.op({0x23, 0, 0x41, 1, 0x6a, 0x24, 0});
                       }); },
      50'000, 8'000, 1'000);
  function(
      "BlocksOneAfterTheOther",
      [](uint32_t n) {
        return plain(n, [](Code& c, uint32_t) {
          c.op({0x02, kNoResult}).get(0).op({0x0d, 0}).get(1).i32(1).op({0x6a}).set(1).op({kEnd});
        });
      },
      50'000, 5'000, 500);
  function(
      "IfsOneAfterTheOther",
      [](uint32_t n) {
        return plain(n, [](Code& c, uint32_t i) {
          c.get(0)
              .i32(i)
              .op({0x46, 0x04, kNoResult})
              .get(1)
              .i32(i)
              .op({0x6a, 0x24, 0, 0x05})
              .get(0)
              .op({0x24, 0, kEnd});
        });
      },
      50'000, 5'000, 500);
  function(
      "LoopsOneAfterTheOther",
      [](uint32_t n) { return plain(n, [](Code& c, uint32_t) { counted_loop(c); }); }, 20'000, 5'000, 50);
  function(
      "Calls", [](uint32_t n) { return plain(n, [](Code& c, uint32_t) {
                                  c.get(0).op({0x10, 0}).set(0);
                                }); },
      50'000, 10'000, 500);
  function(
      "CallsOfASmallFunction",
      [](uint32_t n) { return plain(n, [](Code& c, uint32_t) {
                         c.get(0).op({0x10, 1}).set(0);
                       }); }, 50'000,
      10'000, 500);
  function(
      "IndirectCalls",
      [](uint32_t n) { return plain(n, [](Code& c, uint32_t) {
                         c.get(0).get(1).op({0x11, 2, 0}).set(0);
                       }); },
      50'000, 10'000, 300);
  function(
      "BranchesToOneLabel",
      [](uint32_t n) {
        Code code;
        code.op({0x02, kNoResult})
            .times(n,
                   [](Code& c, uint32_t i) {
                     c.get(0).i32(i).op({0x46, 0x0d, 0});
                   })
            .op({kEnd});
        return function_of({}, code.bytes());
      },
      50'000, 8'000, 1'000);
  function(
      "ValuesToOneLabel",
      [](uint32_t n) {
        Code code;
        code.op({0x02, kI32}).get(1).times(n, [](Code& c, uint32_t i) {
          c.get(0).i32(i).op({0x46, 0x0d, 0}).i32(1).op({0x6a});
        });
        code.op({kEnd}).set(0);
        return function_of({}, code.bytes());
      },
      50'000, 8'000, 1'000);
  function(
      "OneBranchTable", [](uint32_t n) { return branch_tables(1, n); }, 16'000, 16'000, 16'000);
  function(
      "BranchTables", [](uint32_t n) { return branch_tables(n, 100); }, 1'000, 500, 20);
  function("BranchTableOfManyLabels", dispatch, 2'000, 2'000, 100);
  function(
      "NestedBlocks",
      [](uint32_t n) {
        return nested(n, [](Code& c, uint32_t i) { c.op({0x02, kNoResult}).get(0).op({0x0d}).leb(i / 2); });
      },
      2'400, 2'400, 400);
  function(
      "NestedIfs",
      [](uint32_t n) {
        return nested(n, [](Code& c, uint32_t i) {
          c.get(0).i32(i).op({0x46, 0x04, kNoResult}).get(1).i32(1).op({0x6a}).set(1);
        });
      },
      2'400, 2'400, 400);
  function(
      "NestedLoops",
      [](uint32_t n) {
        return nested(
            n,
            [](Code& c, uint32_t i) {
              c.op({0x03, kNoResult}).get(0).i32(i).op({0x6a}).set(0);
            },
            Code().get(0).op({0x0d, 0, kEnd}).bytes());
      },
      2'400, 2'400, 30);
  function(
      "LocalsDeclared",
      [](uint32_t n) {
        Function f;
        f.locals = n;
        return function_of(f, Code().get(2 + n / 2).set(0).bytes());
      },
      12'000, 12'000, 2'000);
  function(
      "LocalsUsed",
      [](uint32_t n) {
        Function f;
        f.locals = n;
        return function_of(f,
                           Code()
                               .times(n, [](Code& c, uint32_t i) { c.get(0).i32(i).op({0x6a}).set(2 + i); })
                               .times(n, [](Code& c, uint32_t i) { c.get(2 + i).get(1).op({0x73}).set(1); })
                               .bytes());
      },
      12'000, 12'000, 1'000);
  function("LocalsAcrossBlocks", locals_across_blocks, 10'000, 3'000, 60);
  function(
      "OperandsOnTheStack",
      [](uint32_t n) {
        Code code;
        code.times(n, [](Code& c, uint32_t i) { c.get(0).i32(i).op({0x6a}); });
        code.times(n - 1, [](Code& c, uint32_t) { c.op({0x6a}); }).set(1);
        return function_of({}, code.bytes());
      },
      24'000, 20'000, 1'000);
  function(
      "OperandsAcrossBlocks",
      [](uint32_t n) {
        Code code;
        code.times(n, [](Code& c, uint32_t) { c.get(0).op({0x02, kNoResult}).get(1).op({0x0d, 0, kEnd}); });
        code.times(n - 1, [](Code& c, uint32_t) { c.op({0x6a}); }).set(1);
        return function_of({}, code.bytes());
      },
      24'000, 5'000, 500);
  function(
      "TryTablesOneAfterTheOther", [](uint32_t n) { return try_tables(n, false); }, 10'000, 5'000, 50);
  function(
      "NestedTryTables", [](uint32_t n) { return try_tables(n, true); }, 1'200, 1'200, 50);
  function("TallBlocks", tall_blocks, 250, 250, 100);
  function("ParametersAndResults", recursive_with_arguments, 250, 250, 100);
  function(
      "Selects",
      [](uint32_t n) {
        return plain(n, [](Code& c, uint32_t i) { c.get(0).i32(i).get(1).op({0x1b}).set(i % 2); });
      },
      50'000, 8'000, 1'000);
  function(
      "SelectsOfSelects",
      [](uint32_t n) {
        Code code;
        code.get(0).times(n, [](Code& c, uint32_t i) { c.i32(i).get(1).op({0x1b}); }).set(0);
        return function_of({}, code.bytes());
      },
      50'000, 8'000, 1'000);
  function(
      "VectorConstants",
      [=](uint32_t n) {
        return plain(
            n,
            [](Code& c, uint32_t i) {
              c.get(2).add(v128_const(i)).op({0xfd, 0xae, 1}).set(2);
            },
            with_vectors);
      },
      20'000, 10'000, 500);
  return all;
}

}  // namespace

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = make_shapes();
  return all;
}

}  // namespace hindsight::jit::testing
