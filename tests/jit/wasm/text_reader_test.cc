// The text reader: tokens, numbers, abbreviations, errors, and texts that are meant to hurt.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "jit/wasm/module.h"
#include "jit/wasm/text/assembler.h"
#include "jit/wasm/text/literals.h"
#include "jit/wasm/text/script.h"

namespace hindsight::wasm::text {
namespace {

std::vector<uint8_t> bytes_of(std::string_view source) {
  auto assembly = assemble(source, "m");
  EXPECT_TRUE(assembly) << source << "\n" << (assembly ? "" : assembly.error().describe());
  return assembly ? assembly->bytes : std::vector<uint8_t>();
}

std::string error_of(std::string_view source) {
  const auto assembly = assemble(source, "m");
  if (assembly) return "ok";
  EXPECT_EQ(assembly.error().kind, ErrorKind::kBadModule);
  EXPECT_EQ(assembly.error().place, "m");
  return assembly.error().message;
}

// A type for each function, so that both sides of an abbreviation have the same ones.
TEST(TextReader, ReadsAbbreviationsAsWhatTheyStandFor) {
  const std::pair<const char*, const char*> pairs[] = {
      {"", "(module)"},
      {"(func)", "(module (func))"},
      {"(module (func (param i32 i64)))", "(module (func (param i32) (param i64)))"},
      {"(module (func (result i32 i64) unreachable))",
       "(module (func (result i32) (result i64) (unreachable)))"},
      {"(module (func (local i32 i64)))", "(module (func (local i32) (local i64)))"},
      {"(module (func (param i32)))", "(module (type (func (param i32))) (func (type 0)))"},
      {"(module (func (type 0)) (type (func (param i32))))",
       "(module (type (func (param i32))) (func (param i32)))"},
      {"(module (func (export \"a\") (export \"b\")))",
       "(module (func) (export \"a\" (func 0)) (export \"b\" (func 0)))"},
      {"(module (func (export \"e\") (import \"a\" \"b\") (param i32)))",
       "(module (import \"a\" \"b\" (func (param i32))) (export \"e\" (func 0)))"},
      {"(module (memory (import \"a\" \"b\") 1 2))", "(module (import \"a\" \"b\" (memory 1 2)))"},
      {"(module (table (import \"a\" \"b\") 1 funcref))",
       "(module (import \"a\" \"b\" (table 1 (ref null func))))"},
      {"(module (global (import \"a\" \"b\") (mut i32)))",
       "(module (import \"a\" \"b\" (global (mut i32))))"},
      {"(module (tag (import \"a\" \"b\") (param i32)))", "(module (import \"a\" \"b\" (tag (param i32))))"},
      {"(module (memory (data \"ab\" \"c\")))", "(module (memory 1 1) (data (i32.const 0) \"abc\"))"},
      {"(module (memory i64 (data \"a\")))", "(module (memory i64 1 1) (data (i64.const 0) \"a\"))"},
      {"(module (func) (table funcref (elem 0 0)))",
       "(module (func) (table 2 2 funcref) (elem (i32.const 0) func 0 0))"},
      {"(module (func) (table funcref (elem (ref.func 0))))",
       "(module (func) (table 1 1 funcref) (elem (i32.const 0) funcref (item ref.func 0)))"},
      {"(module (func) (table 1 funcref) (elem (i32.const 0) 0))",
       "(module (func) (table 1 funcref) (elem (table 0) (offset i32.const 0) func 0))"},
      {"(module (func) (table 1 funcref) (elem 0 (i32.const 0) 0))",
       "(module (func) (table 1 funcref) (elem (i32.const 0) func 0))"},
      {"(module (memory 1) (data 0 (i32.const 0) \"a\"))",
       "(module (memory 1) (data (memory 0) (offset i32.const 0) \"a\"))"},
      {"(module (table 1 funcref) (func (drop (table.get (i32.const 0)))))",
       "(module (table 1 funcref) (func i32.const 0 table.get 0 drop))"},
      {"(module (table 1 funcref) (func table.size drop))",
       "(module (table 1 funcref) (func table.size 0 drop))"},
      {"(module (table 1 funcref) (func (table.copy (i32.const 0) (i32.const 0) (i32.const 0))))",
       "(module (table 1 funcref) (func i32.const 0 i32.const 0 i32.const 0 table.copy 0 0))"},
      {"(module (table 1 funcref) (elem func) (func (table.init 0 (i32.const 0) (i32.const 0) (i32.const "
       "0))))",
       "(module (table 1 funcref) (elem func) (func i32.const 0 i32.const 0 i32.const 0 table.init 0 0))"},
      {"(module (memory 1) (func (drop (i32.load (i32.const 0)))))",
       "(module (memory 1) (func (drop (i32.load 0 offset=0 align=4 (i32.const 0)))))"},
      {"(module (memory 1) (func (drop (v128.load8_lane 3 (i32.const 0) (v128.const i64x2 0 0)))))",
       "(module (memory 1) (func (drop (v128.load8_lane 0 offset=0 3 (i32.const 0) (v128.const i8x16 0 0 0 0 "
       "0 0 0 0 0 0 0 0 0 0 0 "
       "0)))))"},
      {"(module (table 1 funcref) (func (call_indirect (param i32) (i32.const 0) (i32.const 0))))",
       "(module (table 1 funcref) (type (func)) (type (func (param i32))) (func (type 0) i32.const 0 "
       "i32.const 0 call_indirect 0 "
       "(type 1)))"},
      {"(module (func (if (i32.const 1) (then nop) (else unreachable))))",
       "(module (func i32.const 1 if nop else unreachable end))"},
      {"(module (func (block (result i32) (i32.const 1)) drop))",
       "(module (func block (result i32) i32.const 1 end drop))"},
      {"(module (func (try (do nop) (catch_all nop))))", "(module (func try nop catch_all nop end))"},
      {"(module (func (try (do nop) (delegate 0))))", "(module (func try nop delegate 0))"},
      {"(module (func (select (result i32) (i32.const 1) (i32.const 2) (i32.const 3)) drop))",
       "(module (func i32.const 1 i32.const 2 i32.const 3 select (result i32) drop))"},
      {"(module (rec (type (func))))", "(module (type (func)))"},
      {"(module (type (sub final (func))))", "(module (type (func)))"},
      {"(module (type (struct (field i32 (mut i8)))))",
       "(module (type (struct (field i32) (field (mut i8)))))"},
      {"(module (global anyref (ref.null any)))", "(module (global (ref null any) (ref.null any)))"},
      {"(module (func $\"a\\62\" (call $ab)) (func (call $\"\\u{61}b\")))",
       "(module (func $ab (call 0)) (func (call 0)))"},
  };
  for (const auto& [shorter, longer] : pairs)
    EXPECT_EQ(bytes_of(shorter), bytes_of(longer)) << shorter << "\n" << longer;
}

TEST(TextReader, FindsThingsByNameBeforeAndAfterTheirDefinition) {
  EXPECT_EQ(bytes_of("(module (start $f) (func $f (call $g)) (func $g (global.set $x (i32.const 1))) (global "
                     "$x (mut i32) (i32.const 0)))")
                .size(),
            bytes_of("(module (global $x (mut i32) (i32.const 0)) (func $f (call $g)) (func $g (global.set "
                     "$x (i32.const 1))) (start $f))")
                .size());
  EXPECT_EQ(error_of("(module (func (block $a (block $a (br $a)) (br $a))))"), "ok");
  const auto inner = bytes_of("(module (func (block $a (block $a (br $a) (br 1)))))");
  EXPECT_EQ(inner, bytes_of("(module (func (block (block (br 0) (br 1)))))"));
  // The label of a folded `if` is not yet there in its condition.
  EXPECT_EQ(
      bytes_of(
          "(module (func (block $a (if $a (block (result i32) (br $a) (i32.const 1)) (then (br $a))))))"),
      bytes_of("(module (func block block (result i32) br 1 i32.const 1 end if br 0 end end))"));
}

// The rest of what it says is in verdicts/text.txt.
TEST(TextReader, CountsALineThatEndsWithTwoCharactersOnce) {
  EXPECT_EQ(error_of("(module\r\n\t(func (local.get $x)))"), "2:19: unknown local $x");
}

TEST(TextReader, GivesNamesHintsAndCustomSectionsTheirPlaces) {
  const auto bytes = bytes_of(
      "(module $m (tag $t) (func $f (param $p i32) (@metadata.code.branch_hint \"\\01\") (if (local.get $p) "
      "(then)))"
      " (func (@name \"g h\")) (@custom \"c\" (before func) \"xyz\"))");
  const auto module = decode_module(bytes, "");
  ASSERT_TRUE(module) << module.error().describe();
  EXPECT_EQ((*module)->name, "m");
  EXPECT_EQ((*module)->function_name(FuncIndex(0)), "f");
  EXPECT_EQ((*module)->function_name(FuncIndex(1)), "g h");
  EXPECT_EQ((*module)->tag_name(0), "t");
  ASSERT_EQ((*module)->branch_hints.size(), 1u);
  EXPECT_TRUE((*module)->branch_hints[0].likely);
  ASSERT_EQ((*module)->custom_sections.size(), 3u);
  EXPECT_EQ((*module)->custom_sections[0].name, "c");
}

TEST(TextReader, TellsWhereInTheTextAByteComesFrom) {
  const std::string source = "(module\n  (func (result i32)\n    i64.const 1))";
  const auto bytes = bytes_of(source);
  const auto module = decode_module(bytes, "m");
  ASSERT_FALSE(module);
  const std::vector<uint8_t> text(source.begin(), source.end());
  const auto read = read_module(text, "m.wat");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "3:5: type mismatch: expected i32, found i64 (in function 0)");
  EXPECT_FALSE(read.error().offset.has_value());
}

TEST(TextReader, CallsAFileNeitherWithItsFirstBytes) {
  const auto message = [](std::string_view file) {
    const auto module = read_module({reinterpret_cast<const uint8_t*>(file.data()), file.size()}, "f");
    EXPECT_FALSE(module);
    return module ? "ok" : module.error().message;
  };
  EXPECT_EQ(message("\x7f"
                    "ELF"),
            "neither a binary module, which begins with the bytes 00 61 73 6d, nor text, which begins with a "
            "parenthesis: "
            "this begins with 7f 45 4c 46");
  EXPECT_EQ(message(""), "the file is empty: neither a binary module nor text");
  EXPECT_EQ(message("hello"),
            "neither a binary module, which begins with the bytes 00 61 73 6d, nor text, which begins with a "
            "parenthesis: "
            "this begins with 68 65 6c 6c 6f");
}

// --- numbers

TEST(TextNumbers, IntegersKeepTheirBitsAndTheirRange) {
  const auto integer = [](std::string_view text, unsigned bits) {
    uint64_t value = 0;
    const NumberStatus status = parse_integer(text, bits, value);
    return status == NumberStatus::kOk           ? std::to_string(value)
           : status == NumberStatus::kNotANumber ? "no"
                                                 : "range";
  };
  EXPECT_EQ(integer("-1", 32), "4294967295");
  EXPECT_EQ(integer("-0x8000_0000", 32), "2147483648");
  EXPECT_EQ(integer("-2147483649", 32), "range");
  EXPECT_EQ(integer("4294967295", 32), "4294967295");
  EXPECT_EQ(integer("4294967296", 32), "range");
  EXPECT_EQ(integer("18446744073709551615", 64), "18446744073709551615");
  EXPECT_EQ(integer("18446744073709551616", 64), "range");
  EXPECT_EQ(integer("-9223372036854775808", 64), "9223372036854775808");
  for (const char* wrong : {"", "-", "+", "0x", "1_", "_1", "1__0", "0x_1", "1a", "0X1", "1.0"})
    EXPECT_EQ(integer(wrong, 32), "no") << wrong;
}

uint64_t float_bits(const std::string& text, unsigned bits) {
  uint64_t value = 0;
  EXPECT_EQ(parse_float(text, bits, value), NumberStatus::kOk) << text;
  return value;
}

TEST(TextNumbers, FloatsAreRoundedToTheNearest) {
  EXPECT_EQ(float_bits("0x1.000001p0", 32), 0x3f80'0000u) << "a tie goes to even";
  EXPECT_EQ(float_bits("0x1.0000010000000000000000000000000001p0", 32), 0x3f80'0001u);
  EXPECT_EQ(float_bits("0x1.fffffefp127", 32), 0x7f7f'ffffu);
  EXPECT_EQ(float_bits("0x1p-150", 32), 0u);
  EXPECT_EQ(float_bits("0x1.8p-150", 32), 1u);
  EXPECT_EQ(float_bits("-0x1p-99999999999999999999", 64), uint64_t{1} << 63);
  EXPECT_EQ(float_bits("1e-99999999999999999999", 64), 0u);
  EXPECT_EQ(float_bits("0e99999999999999999999", 64), 0u);
  EXPECT_EQ(float_bits("-nan:0x7f_ffff", 32), 0xffff'ffffu);
  EXPECT_EQ(float_bits("nan", 64), 0x7ff8'0000'0000'0000u);
  EXPECT_EQ(float_bits("1_0.2_5e+0_1", 64), std::bit_cast<uint64_t>(102.5));
  uint64_t ignored = 0;
  for (const char* text : {"1e400", "0x1p1024", "1e99999999999999999999", "nan:0x0", "nan:0x10000000000000"})
    EXPECT_EQ(parse_float(text, 64, ignored), NumberStatus::kOutOfRange) << text;
  EXPECT_EQ(parse_float("0x1.ffffffp127", 32, ignored), NumberStatus::kOutOfRange);
  for (const char* text :
       {"", ".5", "1e", "0x1p", "1._5", "1.5_", "nan:", "nan:0x", "infinity", "1e1.5", "0x1.g"})
    EXPECT_EQ(parse_float(text, 64, ignored), NumberStatus::kNotANumber) << text;
}

// The C library rounds correctly in the default mode: an independent opinion.
TEST(TextNumbers, RandomFloatsAreWhatTheCLibraryReads) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string digits;
    const bool hex = random() % 2 == 0;
    const auto add = [&](uint64_t count) {
      for (; count != 0; --count) digits += "0123456789abcdef"[random() % (hex ? 16 : 10)];
    };
    if (hex) digits = "0x";
    add(1 + random() % 20);
    digits += '.';
    add(random() % 30);
    digits += hex ? 'p' : 'e';
    digits += std::to_string(static_cast<int64_t>(random() % (hex ? 2400 : 720)) - (hex ? 1200 : 360));
    uint64_t bits = 0;
    const double wanted = std::strtod(digits.c_str(), nullptr);
    if (parse_float(digits, 64, bits) == NumberStatus::kOk)
      EXPECT_EQ(bits, std::bit_cast<uint64_t>(wanted)) << digits;
    else
      EXPECT_TRUE(std::isinf(wanted)) << digits;
    const float narrow = std::strtof(digits.c_str(), nullptr);
    if (parse_float(digits, 32, bits) == NumberStatus::kOk)
      EXPECT_EQ(bits, std::bit_cast<uint32_t>(narrow)) << digits;
    else
      EXPECT_TRUE(std::isinf(narrow)) << digits;
  }
}

// --- scripts

TEST(TextScript, ReadsCommandsAndWhatTheyExpect) {
  const auto script = read_script(
      "(module $M (memory (export \"m\") 1 1 shared))\n"
      "(register \"mem\" $M)\n"
      "(thread $T1 (shared (module $M)) (register \"mem\" $M) (module (func (export \"f\"))) (invoke "
      "\"f\"))\n"
      "(wait $T1)\n"
      "(module definition $D (func))\n(module instance $I $D)\n"
      "(assert_return (invoke $M \"a\" (i32.const -1)) (either (f32.const nan:canonical) (f32.const 1)) "
      "(ref.null) (ref.extern 3))\n"
      "(assert_malformed (module quote \"(func\" \")\") \"x\")\n"
      "(assert_trap (get $M \"g\") \"t\")",
      "s");
  ASSERT_TRUE(script) << script.error().describe();
  ASSERT_EQ(script->commands.size(), 9u);
  EXPECT_EQ(script->commands[2].kind, ScriptCommand::Kind::kThread);
  EXPECT_EQ(script->commands[2].source, "M");
  EXPECT_EQ(script->commands[2].commands.size(), 3u);
  EXPECT_TRUE(script->commands[4].module->definition);
  EXPECT_EQ(script->commands[5].source, "D");
  const ScriptCommand& wanted = script->commands[6];
  EXPECT_EQ(wanted.line, 7u);
  EXPECT_EQ(wanted.action->arguments[0].lanes[0].bits, 0xffff'ffffu);
  ASSERT_EQ(wanted.results.size(), 3u);
  EXPECT_EQ(wanted.results[0].choices[0].lanes[0].nan, ScriptValue::Nan::kCanonical);
  EXPECT_EQ(wanted.results[2].host, 3u);
  EXPECT_EQ(script->commands[7].module->bytes, "(func)");
  EXPECT_FALSE(read_script("(assert_return)", "s"));
  EXPECT_FALSE(read_script("(module", "s"));
}

// --- texts that are meant to hurt

std::string repeat(std::string_view piece, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(TextHostile, NestingOfAnyDepthIsReadOrRefusedWithoutRecursion) {
  constexpr size_t kDeep = 1'000'000;
  for (const char* piece :
       {"(", "(block ", "(i32.add ", "(if ", "(try ", "(@a ", "(;", "(@custom ", "(module ", "(then ",
        "block ", "(func ", "(rec (type ", "(ref null ", "\"", "$", "((@a) "}) {
    EXPECT_NE(error_of(repeat(piece, kDeep)), "ok") << piece;
    EXPECT_NE(error_of("(module (func " + repeat(piece, kDeep)), "ok") << piece;
  }
  EXPECT_EQ(error_of("(module (func " + repeat("(block ", kDeep) + repeat(")", kDeep) + "))"), "ok");
  EXPECT_EQ(error_of("(module (func " + repeat("block $a ", kDeep) + repeat("end ", kDeep) + "))"), "ok");
  EXPECT_EQ(error_of("(module (@a " + repeat("(", kDeep) + repeat(")", kDeep) + "))"), "ok");
  EXPECT_EQ(error_of(repeat("(;", kDeep) + repeat(";)", kDeep)), "ok");
  EXPECT_FALSE(read_script(repeat("(assert_return ", kDeep), "s"));
  EXPECT_FALSE(read_script(repeat("(thread ", kDeep), "s"));
  EXPECT_FALSE(read_script("(assert_return (invoke \"f\") " + repeat("(either ", kDeep), "s"));
}

TEST(TextHostile, NumbersAndWordsOfAnyLengthHaveAnAnswer) {
  const std::string digits = repeat("9", 1'000'000);
  EXPECT_EQ(error_of("(func (i32.const " + digits + ") drop)"),
            "1:18: constant out of range: an integer of 32 bits");
  EXPECT_EQ(error_of("(func (f64.const " + digits + ") drop)"),
            "1:18: constant out of range: a floating-point number of 64 bits");
  EXPECT_EQ(error_of("(func (f64.const 0." + digits + ") drop)"), "ok");
  EXPECT_EQ(error_of("(func (f32.const 0x0." + digits + "p-" + digits + ") drop)"), "ok");
  EXPECT_EQ(error_of("(func (br " + digits + "))"),
            "1:11: constant out of range: a label is at most 4294967295, found '" + repeat("9", 40) + "...'");
  EXPECT_LT(error_of("(func (" + repeat("a", 1'000'000) + "))").size(), 200u);
  EXPECT_NE(error_of(std::string(1'000'000, '\0')), "ok");
  EXPECT_NE(error_of("(memory 1) (data \"" + repeat("\\", 1'000'001)), "ok");
}

uint64_t steps_of(const std::string& source) {
  const auto assembly = assemble(source, "m");
  EXPECT_TRUE(assembly) << (assembly ? "" : assembly.error().describe());
  return assembly ? assembly->steps : 0;
}

TEST(TextHostile, TheWorkGrowsLikeTheText) {
  const auto texts = [](size_t n) {
    std::string functions = "(module";
    for (size_t i = 0; i < n; ++i)
      functions += " (func $f" + std::to_string(i) + " (param $x i32) (result i32) (call $f" +
                   std::to_string(n - 1 - i) + " (local.get $x)))";
    std::string types = "(module (rec";
    for (size_t i = 0; i < n; ++i)
      types +=
          " (type $t" + std::to_string(i) + " (struct (field $a (ref null $t" + std::to_string(i) + "))))";
    return std::vector<std::string>{
        functions + ")",
        types + "))",
        "(module (func " + repeat("(block $a (br $a) ", n) + repeat(")", n) + "))",
        "(module (func (i32.const 0) " + repeat("(drop (i32.add (i32.const 1) (i32.const 2)))", n) +
            " drop))",
        "(module (table funcref (elem " + repeat("0 ", n) + ")) (func))",
        "(module (memory (data " + repeat("\"ab\\n\" ", n) + ")))",
        "(module " + repeat("(@custom \"a\" \"b\")", n) + ")",
        "(module " + repeat("(@other (a) \"b\")", n) + ")",
        "(module (func (local " + repeat("i32 i64 ", n) + ")))"};
  };
  constexpr size_t kFew = 1000;
  const std::vector<std::string> small = texts(kFew);
  const std::vector<std::string> large = texts(8 * kFew);
  for (size_t i = 0; i < small.size(); ++i) {
    const double per_byte = static_cast<double>(steps_of(small[i])) / static_cast<double>(small[i].size());
    const double per_byte_of_large =
        static_cast<double>(steps_of(large[i])) / static_cast<double>(large[i].size());
    EXPECT_LT(per_byte_of_large, per_byte * 1.1) << small[i].substr(0, 60);
    EXPECT_LT(per_byte_of_large, 8.0) << "a byte is read a few times at most: " << small[i].substr(0, 60);
  }
}

}  // namespace
}  // namespace hindsight::wasm::text
