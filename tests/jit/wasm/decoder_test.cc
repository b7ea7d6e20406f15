#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "jit/wasm/limits.h"
#include "jit/wasm/module.h"
#include "jit/wasm/sha256.h"
#include "jit/wasm/sha256_compress.h"
#include "tests/jit/wasm/module_bytes.h"

namespace hindsight::wasm {
namespace {

using namespace testing;
using ::testing::HasSubstr;

void expect_error(const Bytes& bytes, ErrorKind kind, const std::string& message, uint64_t offset) {
  const auto result = decode_module(bytes, "test.wasm");
  ASSERT_FALSE(result.has_value()) << "accepted, expected: " << message;
  EXPECT_EQ(result.error().kind, kind) << result.error().describe();
  EXPECT_THAT(result.error().message, HasSubstr(message));
  EXPECT_EQ(result.error().place, "test.wasm");
  EXPECT_EQ(result.error().offset, offset) << result.error().describe();
}

void expect_bad(const Bytes& bytes, const std::string& message, uint64_t offset) {
  expect_error(bytes, ErrorKind::kBadModule, message, offset);
}

void expect_unsupported(const Bytes& bytes, const std::string& message, uint64_t offset) {
  expect_error(bytes, ErrorKind::kUnsupported, message, offset);
}

std::shared_ptr<const Module> decode(const Bytes& bytes) {
  auto result = decode_module(bytes, "test.wasm");
  if (!result) {
    ADD_FAILURE() << result.error().describe();
    return std::make_shared<Module>();
  }
  return *result;
}

// A module with everything in it, section by section.
std::vector<Bytes> full_sections() {
  return {
      section(0, text("producer") + Bytes{1, 2, 3}),
      section(1, vec({func_type({}, {}), func_type({kI32}, {kI64, kF32})})),
      section(
          2,
          vec({text("env") + text("f") + Bytes{0, 1}, text("env") + text("t") + Bytes{1, kExternRef, 1, 1, 9},
               text("env") + text("m") + Bytes{2, 1, 1, 4}, text("env") + text("g") + Bytes{3, kI32, 0}})),
      section(3, vec({{0}, {0}})),
      section(4, vec({{kFuncRef, 0, 10}})),
      section(6, vec({{kI64, 1, 0x42, 0x7f, 0x0b}, {kI32, 0, 0x23, 0, 0x0b}, {kFuncRef, 0, 0xd2, 1, 0x0b}})),
      section(7, vec({text("run") + Bytes{0, 1}, text("mem") + Bytes{2, 0}, text("also") + Bytes{0, 1}})),
      section(8, {1}),
      section(9, vec({{0x06, 1, 0x41, 2, 0x0b, kFuncRef, 2, 0xd0, kFuncRef, 0x0b, 0xd2, 2, 0x0b},
                      {0x03, 0, 1, 0}})),
      section(12, {2}),
      section(10, vec({body({}), {4, 1, 3, kF64, 0x0b}})),
      section(11, vec({{0, 0x23, 0, 0x0b, 2, 'h', 'i'}, {1, 1, 'x'}})),
      section(0, text("name") + section(0, text("whole")) +
                     section(1, vec({leb(2) + text("second"), leb(0) + text("imported")})))};
}

Bytes full_module() {
  Bytes out = module({});
  for (const Bytes& part : full_sections()) out = out + part;
  return out;
}

TEST(Decoder, ReadsEverySection) {
  const auto m = decode(full_module());
  ASSERT_EQ(m->types.size(), 2u);
  EXPECT_EQ(to_string(m->types[1]), "(i32) -> (i64, f32)");
  ASSERT_EQ(m->imports.size(), 4u);
  EXPECT_EQ(m->imports[1].table.limits.max, 9u);
  EXPECT_EQ(m->imports[2].memory.limits.min, 1u);
  EXPECT_EQ(m->imported_functions, 1u);
  EXPECT_EQ(m->function_count(), 3u);
  EXPECT_EQ(m->imported_tables, 1u);
  ASSERT_EQ(m->tables.size(), 2u);
  EXPECT_EQ(m->tables[1].limits.min, 10u);
  EXPECT_EQ(m->imported_memories, 1u);
  ASSERT_EQ(m->globals.size(), 4u);
  EXPECT_TRUE(m->globals[0].imported);
  EXPECT_EQ(m->globals[1].init.bits, ~uint64_t{0});
  EXPECT_EQ(m->globals[2].init.kind, ConstExpr::Kind::kGlobalGet);
  EXPECT_EQ(m->start, FuncIndex(1));
  ASSERT_EQ(m->elements.size(), 2u);
  EXPECT_EQ(m->elements[0].items[0].kind, ConstExpr::Kind::kRefNull);
  EXPECT_EQ(m->elements[1].mode, ElementSegment::Mode::kDeclared);
  ASSERT_EQ(m->data.size(), 2u);
  EXPECT_EQ(m->bytes[m->data[0].begin.value], 'h');
  EXPECT_FALSE(m->data[1].active);
  ASSERT_EQ(m->bodies.size(), 2u);
  EXPECT_EQ(m->bodies[1].locals, std::vector<ValType>(3, ValType::kF64));
  EXPECT_EQ(m->decode_stats.custom_sections_skipped, 1u);
  EXPECT_EQ(m->decode_stats.name_errors, 0u);
  EXPECT_EQ(m->declared_function_refs, std::vector<bool>({true, true, true}));
}

TEST(Decoder, FindsExportsNamesAndFunctionsByOffset) {
  const auto m = decode(full_module());
  ASSERT_NE(m->find_export("mem"), nullptr);
  EXPECT_EQ(m->find_export("mem")->kind, ExternKind::kMemory);
  EXPECT_EQ(m->find_export("nothing"), nullptr);
  EXPECT_EQ(m->function_name(FuncIndex(0)), "imported");
  EXPECT_EQ(m->function_name(FuncIndex(1)), "run") << "the first export of an unnamed function";
  EXPECT_EQ(m->function_name(FuncIndex(2)), "second");
  EXPECT_EQ(m->function_at(m->bodies[0].begin), FuncIndex(1));
  EXPECT_EQ(m->function_at(m->bodies[1].begin), FuncIndex(2));
  EXPECT_EQ(m->function_at(WasmOffset(0)), std::nullopt);
  EXPECT_EQ(m->function_at(m->bodies[1].end), std::nullopt);
}

TEST(Decoder, GivesUnnamedFunctionsANumber) {
  const auto m = decode(
      module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})), section(10, vec({body({})}))}));
  EXPECT_EQ(m->function_name(FuncIndex(0)), "func[0]");
}

TEST(Decoder, CountsAndIgnoresErrorsInTheNameSection) {
  const Bytes names = text("name") + section(1, vec({leb(7) + text("no such function")})) +
                      section(0, {9, 'x'}) + section(1, {1, 0, 2, 0xff, 0xff});
  const auto m = decode(module({section(0, names)}));
  EXPECT_EQ(m->decode_stats.name_errors, 3u);
  EXPECT_TRUE(m->function_names.empty());
}

TEST(Decoder, TakesTheNameOfTheModuleFromTheNameSectionIfItHasNoOther) {
  const auto m = decode_module(full_module(), "");
  ASSERT_TRUE(m.has_value());
  EXPECT_EQ((*m)->name, "whole");
}

TEST(Decoder, HashesTheBytesWithSha256) {
  auto hex = [](std::array<uint8_t, 32> hash) {
    std::string out;
    for (const uint8_t byte : hash) {
      constexpr const char* kDigits = "0123456789abcdef";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
    return out;
  };
  // The examples of FIPS 180-4's companion "SHA-256 examples".
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string abc = "abc";
  EXPECT_EQ(hex(sha256(Bytes(abc.begin(), abc.end()))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  EXPECT_EQ(hex(sha256(Bytes(two.begin(), two.end()))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  const Bytes million(1'000'000, 'a');
  EXPECT_EQ(hex(sha256(million)), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(decode(full_module())->content_hash(), sha256(full_module()));
}

TEST(Decoder, HashesAlikeWithAndWithoutTheProcessorsHelp) {
  if (!has_sha_instructions()) GTEST_SKIP() << "this processor lacks the SHA extensions";
  Bytes blocks(7 * 64);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<uint8_t>(i * 31 + 7);
  std::array<uint32_t, 8> a = {1, 2, 3, 4, 5, 6, 7, 8};
  auto b = a;
  compress_portable(a, blocks.data(), 7);
  compress_with_sha_instructions(b, blocks.data(), 7);
  EXPECT_EQ(a, b);
}

TEST(Decoder, RefusesWhatIsNotAModule) {
  expect_bad({}, "unexpected end", 0);
  expect_bad({0, 'a', 's'}, "unexpected end", 3);
  expect_bad({'w', 'a', 's', 'm', 1, 0, 0, 0}, "magic header not detected", 0);
  expect_bad({0, 'a', 's', 'm', 2, 0, 0, 0}, "unknown binary version", 4);
  expect_unsupported({0, 'a', 's', 'm', 0x0d, 0, 1, 0}, "component model", 4);
  EXPECT_FALSE(is_binary_module(Bytes{0, 'a', 's'}));
  EXPECT_TRUE(is_binary_module(module({})));
}

TEST(Decoder, RefusesMalformedSections) {
  expect_bad(module({{14, 0}}), "malformed section id 14", 8);
  expect_bad(module({{1}}), "unexpected end", 9);
  expect_bad(module({{1, 5, 0}}), "length out of bounds", 9);
  expect_bad(module({section(1, {0, 0})}), "section size mismatch", 11);
  expect_bad(module({section(1, {0}), section(1, {0})}), "unexpected content after last section", 11);
  expect_bad(module({section(3, {0}), section(1, {0})}), "unexpected content after last section", 11);
  expect_bad(module({{1, 0x80, 0x80, 0x80, 0x80, 0x80, 0}}), "integer representation too long", 9);
  expect_bad(module({{1, 0x80, 0x80, 0x80, 0x80, 0x10}}), "integer too large", 9);
  expect_bad(module({section(0, {})}), "unexpected end", 10);
  expect_bad(module({section(0, {1, 0xff})}), "malformed UTF-8 encoding", 11);
}

TEST(Decoder, RefusesMalformedTypes) {
  expect_bad(module({section(1, vec({{0x61, 0, 0}}))}), "malformed function type", 11);
  expect_bad(module({section(1, vec({func_type({0x40}, {})}))}), "malformed value type 0x40", 13);
  expect_bad(module({section(1, {0xff, 0xff, 0xff, 0x0f})}), "do not fit", 10);
}

TEST(Decoder, RefusesMalformedImportsAndExports) {
  const Bytes types = section(1, vec({func_type({}, {})}));  // 8..13
  expect_bad(module({section(2, vec({text("m") + text("n") + Bytes{5, 0}}))}), "malformed import kind 5", 15);
  expect_bad(module({section(2, vec({text("m") + text("n") + Bytes{0, 0}}))}), "unknown type 0", 16);
  expect_bad(module({section(2, vec({text("m") + text("\xc0\x80") + Bytes{0, 0}}))}),
             "malformed UTF-8 encoding", 14);
  expect_bad(module({section(2, vec({text("m") + text("n") + Bytes{3, kI32, 4}}))}), "malformed mutability",
             17);
  expect_bad(module({section(7, vec({text("a") + Bytes{0, 0}}))}), "unknown function 0", 14);
  expect_bad(module({section(7, vec({text("a") + Bytes{9, 0}}))}), "malformed export kind 9", 13);
  expect_bad(
      module({types, section(2, vec({text("m") + text("n") + Bytes{0, 0}})),
              section(7, vec({text("a") + Bytes{0, 0}, text("b") + Bytes{0, 0}, text("a") + Bytes{0, 0}}))}),
      "duplicate export name \"a\"", 34);
}

TEST(Decoder, RefusesMalformedTablesAndMemories) {
  expect_bad(module({section(4, vec({{kI32, 0, 0}}))}), "malformed reference type", 11);
  expect_bad(module({section(4, vec({{kFuncRef, 0x80, 0, 0}}))}), "integer representation too long", 12);
  expect_bad(module({section(4, vec({{kFuncRef, 1, 2, 1}}))}),
             "size minimum must not be greater than maximum", 12);
  expect_bad(module({section(5, vec({Bytes{0} + leb(65537)}))}),
             "memory size must be at most 65536 pages (4GiB)", 11);
  expect_bad(module({section(5, vec({{0x10, 0, 0}}))}), "malformed limits flags", 11);
}

TEST(Decoder, RefusesMalformedConstantExpressions) {
  auto global = [](const Bytes& init) { return module({section(6, vec({Bytes{kI32, 0} + init}))}); };
  expect_bad(global({0x0b, 0x0b}), "type mismatch", 13);
  expect_bad(global({0x42, 0, 0x0b}), "type mismatch", 13);
  expect_bad(global({0x41, 0, 0x41, 0, 0x0b}), "type mismatch", 17);
  expect_bad(global({0x01, 0x0b}), "constant expression required", 13);
  expect_bad(global({0x23, 0, 0x0b}), "unknown global 0", 13);
  expect_bad(global({0x41, 0}), "unexpected end", 15);
  expect_bad(global({0x41, 0, 0x6a, 0x0b}), "type mismatch: the constant expression lacks an operand", 15);
  expect_bad(global({0x41, 0, 0x42, 0, 0x6a, 0x0b}), "type mismatch: expected i32, found i64", 17);
  expect_bad(global({0x41, 0, 0x41, 0, 0x6d, 0x0b}), "constant expression required", 17);
  expect_bad(module({section(2, vec({text("m") + text("n") + Bytes{3, kI32, 1}})),
                     section(6, vec({{kI32, 0, 0x23, 0, 0x0b}}))}),
             "constant expression required", 23);
}

TEST(Decoder, RefusesMalformedSegments) {
  const Bytes memory = section(5, vec({{0, 1}}));  // 8..12
  expect_bad(module({section(11, vec({{0, 0x41, 0, 0x0b, 0}}))}), "unknown memory 0", 12);
  expect_bad(module({memory, section(11, vec({{3, 0}}))}), "malformed data segment kind 3", 16);
  expect_bad(module({memory, section(11, vec({{0, 0x41, 0, 0x0b, 5, 1}}))}), "unexpected end", 20);
  expect_bad(module({section(12, {1}), section(11, {0})}), "inconsistent lengths", 13);
  expect_bad(module({section(12, {1})}), "inconsistent lengths", 11);
  expect_bad(module({section(9, vec({{0, 0x41, 0, 0x0b, 0}}))}), "unknown table 0", 12);
  expect_bad(module({section(9, vec({{8, 0, 0}}))}), "malformed elements segment kind 8", 11);
  expect_bad(module({section(9, vec({{1, 0, 1, 3}}))}), "unknown function 3", 14);
  expect_bad(module({section(9, vec({{1, 1, 0}}))}), "malformed element kind 1", 12);
  expect_bad(
      module({section(4, vec({{kFuncRef, 0, 1}})), section(9, vec({{6, 0, 0x41, 0, 0x0b, kExternRef, 0}}))}),
      "type mismatch", 22);
}

TEST(Decoder, RefusesFunctionsAndBodiesThatDoNotMatch) {
  const Bytes types = section(1, vec({func_type({}, {})}));  // 8..13
  expect_bad(module({types, section(3, vec({{0}}))}), "function and code section have inconsistent lengths",
             18);
  expect_bad(module({types, section(10, vec({body({})}))}),
             "function and code section have inconsistent lengths", 16);
  expect_bad(module({types, section(3, vec({{1}}))}), "unknown type 1", 17);
  expect_bad(module({types, section(3, vec({{0}})), section(8, {1})}), "unknown function 1", 20);
  expect_bad(module({section(1, vec({func_type({kI32}, {})})), section(3, vec({{0}})), section(8, {0})}),
             "start function", 21);
  const Bytes head = types + section(3, vec({{0}}));  // ends at 18
  expect_bad(module({head, section(10, vec({{9, 0, 0x0b}}))}), "unexpected end", 21);
  expect_bad(module({head, section(10, vec({{3, 0, 0x01, 0x01}}))}), "unexpected end", 25);
  expect_bad(module({head, section(10, vec({{3, 0, 0x0b, 0x01}}))}), "section size mismatch", 24);
  expect_bad(module({head, section(10, vec({{5, 1, 1, 0x40, 0x0b, 0x0b}}))}), "malformed value type", 24);
}

TEST(Decoder, SaysWhichFunctionIsWrong) {
  const auto result = decode_module(module_around({}, {}, {0x6a}), "m");
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("(in function 0)"));
}

TEST(Decoder, TakesSharedMemoriesThatHaveAMaximum) {
  const auto shared = decode_module(module({section(5, vec({{3, 1, 4}}))}), "m");
  ASSERT_TRUE(shared.has_value()) << shared.error().describe();
  EXPECT_TRUE((*shared)->memories[0].shared);
  EXPECT_FALSE((*shared)->memories[0].is64);
  const auto large = decode_module(module({section(5, vec({{7, 1, 4}}))}), "m");
  ASSERT_TRUE(large.has_value()) << large.error().describe();
  EXPECT_TRUE((*large)->memories[0].shared && (*large)->memories[0].is64);
  expect_error(module({section(5, vec({{2, 1}}))}), ErrorKind::kBadModule, "shared memory must have maximum",
               11);
}

TEST(Decoder, NamesEachUnsupportedFeatureOfTheSections) {
  expect_unsupported(module({section(1, vec({{0x5f, 0, 0}}))}), "garbage collection", 11);
  expect_unsupported(module({section(1, vec({func_type({0x6e}, {})}))}), "garbage collection", 13);
  expect_unsupported(module({section(1, vec({func_type({0x74}, {})}))}), "exception handling (noexn)", 13);
  expect_unsupported(module({section(4, vec({{kFuncRef, 3, 1, 1}}))}), "threads (shared tables)", 12);
  expect_unsupported(module({section(4, vec({{kFuncRef, 4, 1}}))}), "memory64", 12);
  expect_unsupported(module({section(5, vec({{8, 1, 0}}))}), "custom page sizes", 11);
  expect_unsupported(module({section(1, vec({{0x5f, 0}}))}), "garbage collection", 11);  // an empty structure
  expect_unsupported(module({section(1, vec({{0x4e, 0}}))}), "garbage collection", 11);  // an empty group
  expect_unsupported(module({section(1, vec({{0x4e, 1, 0x60, 0, 0}}))}), "garbage collection", 11);
  expect_unsupported(module({section(1, vec({{0x50, 0, 0x5f, 0}}))}), "garbage collection", 11);
  expect_unsupported(module({section(1, vec({{0x5e, 0x7f, 0}}))}), "garbage collection", 11);
  expect_unsupported(module({section(1, vec({{0x5d, 0}}))}), "stack switching", 11);
  expect_unsupported(module({section(1, vec({{0x65, 0x60, 0, 0}}))}), "threads (shared types)", 11);
  expect_unsupported(module({section(1, vec({func_type({0x63, 0x6e}, {})}))}), "garbage collection", 14);
  expect_unsupported(module({section(1, vec({func_type({0x64, 0x75}, {})}))}), "stack switching", 14);
  expect_unsupported(module({section(1, vec({func_type({0x65, 0x70}, {})}))}), "threads (shared types)", 13);
  expect_unsupported(module({section(4, vec({{0x6d, 0, 0}}))}), "garbage collection", 11);
  expect_unsupported(module({section(4, vec({{kFuncRef, 8, 0, 0}}))}), "custom page sizes", 12);
  expect_unsupported(module({section(6, vec({{0x6c, 0, 0xfb, 0x1c, 0x0b}}))}), "garbage collection", 11);
}

TEST(Decoder, ReadsConstantExpressionsThatUseEarlierGlobals) {
  const auto read = decode_module(
      module({section(6, vec({{kI32, 0, 0x41, 5, 0x0b}, {kI32, 0, 0x23, 0, 0x41, 1, 0x6a, 0x0b}}))}), "m");
  ASSERT_TRUE(read) << read.error().describe();
  EXPECT_EQ((*read)->globals[1].init.kind, ConstExpr::Kind::kCode);
  // Itself, and one after it.
  expect_error(module({section(6, vec({{kI32, 0, 0x23, 0, 0x0b}}))}), ErrorKind::kBadModule,
               "unknown global 0", 13);
  expect_error(module({section(6, vec({{kI32, 1, 0x41, 5, 0x0b}, {kI32, 0, 0x23, 0, 0x0b}}))}),
               ErrorKind::kBadModule, "constant expression required: global 0 is mutable", 18);
}

// In WebAssembly 3.0 the number is a u64 and its value has to fit.
TEST(Decoder, ReadsOffsetsOfMemoriesWith32BitAddressesInUpToTenBytes) {
  const auto with_offset = [](const Bytes& offset) {
    const Bytes code = Bytes{0, 0x41, 0, 0x28, 2} + offset + Bytes{0x1a, 0x0b};
    return module({section(1, vec({func_type({}, {})})), section(3, vec({{0}})), section(5, vec({{0, 1}})),
                   section(10, vec({leb(code.size()) + code}))});
  };
  const Bytes ten{0x84, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
  EXPECT_TRUE(decode_module(with_offset(ten), "m"));
  EXPECT_TRUE(decode_module(with_offset({0xff, 0xff, 0xff, 0xff, 0x8f, 0x00}), "m"));
  expect_error(with_offset({0x80, 0x80, 0x80, 0x80, 0x10}), ErrorKind::kBadModule, "offset out of range", 32);
  expect_error(with_offset(Bytes(10, 0x80) + Bytes{0}), ErrorKind::kBadModule,
               "integer representation too long", 32);
}

TEST(Decoder, RefusesModulesBeyondTheLimitsWithTheLimitsName) {
  expect_unsupported(module({section(1, vec({func_type(Bytes(kMaxParams + 1, kI32), {})}))}),
                     "too many parameters", 13);
  expect_unsupported(module({section(4, vec({Bytes{kFuncRef, 0} + leb(kMaxTableElements + 1)}))}),
                     "too many table elements", 12);
  const Bytes head = section(1, vec({func_type({}, {})})) + section(3, vec({{0}}));  // ends at 18
  auto with_locals = [&](const Bytes& groups) {
    const Bytes contents = groups + Bytes{0x0b};
    return module({head, section(10, leb(1) + leb(contents.size()) + contents)});
  };
  expect_unsupported(with_locals(Bytes{1} + leb(kMaxLocals + 1) + Bytes{kI32}), "too many locals", 23);
  expect_bad(with_locals(Bytes{2} + leb(1) + Bytes{kI32} + leb(0xffffffff) + Bytes{kI32}), "too many locals",
             25);
  EXPECT_TRUE(decode_module(with_locals(Bytes{1} + leb(kMaxLocals) + Bytes{kI32}), "m").has_value());
}

TEST(Decoder, BoundsTheLocalsOfAllFunctionsTogether) {
  const Bytes one = Bytes{6, 1} + leb(kMaxLocals) + Bytes{kI32, 0x0b};
  const uint32_t count = 30;
  Bytes functions = leb(count);
  Bytes bodies = leb(count);
  for (uint32_t i = 0; i < count; ++i) {
    functions.push_back(0);
    bodies = bodies + one;
  }
  const auto result = decode_module(
      module({section(1, vec({func_type({}, {})})), section(3, functions), section(10, bodies)}), "m");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(result.error().message, HasSubstr("too many locals in all functions together"));
}

TEST(Decoder, RefusesEveryPrefixOfAModuleThatIsNotAModuleItself) {
  // A prefix that ends between sections is a module under two conditions. No function waits for its body
  // (sections 3 to 9 of the list), and no data count for its data.
  std::set<size_t> modules;
  size_t end = 8;
  const auto sections = full_sections();
  for (size_t i = 0; i < sections.size(); ++i) {
    if (i <= 3 || i == 12) modules.insert(end);
    end += sections[i].size();
  }
  const Bytes whole = full_module();
  ASSERT_EQ(end, whole.size());
  for (size_t length = 0; length < whole.size(); ++length) {
    const Bytes prefix(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const auto result = decode_module(prefix, "prefix");
    EXPECT_EQ(result.has_value(), modules.contains(length)) << length;
    if (result.has_value()) continue;
    EXPECT_EQ(result.error().kind, ErrorKind::kBadModule) << length;
    ASSERT_TRUE(result.error().offset.has_value()) << length;
    EXPECT_LE(*result.error().offset, length);
  }
}

}  // namespace
}  // namespace hindsight::wasm
