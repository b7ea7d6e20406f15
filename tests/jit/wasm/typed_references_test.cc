// Typed function references: which modules are valid, and how their types are encoded.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/module.h"
#include "tests/jit/wasm/module_bytes.h"
#include "tests/jit/wasm/typed_modules.h"

namespace hindsight::wasm {
namespace {

using namespace testing;

Result<std::shared_ptr<const Module>> decode_references(std::string_view wat) {
  HINDSIGHT_ASSIGN(const Bytes bytes, assemble_text(wat, "m"));
  return decode_module(bytes, "m");
}

Result<std::shared_ptr<const Module>> decode_references(const Bytes& bytes) {
  return decode_module(bytes, "m");
}

TEST(TypedReferences, ValidModulesAreAccepted) {
  for (const std::string_view wat : kValidTypedModules) {
    const auto result = decode_references(wat);
    EXPECT_TRUE(result) << wat << '\n' << (result ? "" : result.error().describe());
  }
}

TEST(TypedReferences, TypesAreEqualIfTheyAreBuiltInTheSameWay) {
  const auto m = decode_references(R"((module
    (type $a (func (param (ref null $a)) (result i32)))
    (type $b (func (param (ref null $b)) (result i32)))
    (type $unrolled (func (param (ref null $a)) (result i32)))
    (type $c (func (param (ref $a))))
    (type $d (func (param (ref $b))))
    (type $e (func (result (ref $b))))
    (type $f (func (param (ref null $b))))))");
  ASSERT_TRUE(m) << m.error().describe();
  EXPECT_EQ((*m)->canonical_types, (std::vector<uint32_t>{0, 0, 2, 3, 3, 5, 6}));
  EXPECT_EQ((*m)->types[0], (*m)->types[1]);
  EXPECT_EQ((*m)->types[3], (*m)->types[4]);
}

TEST(TypedReferences, AreNamedInMessages) {
  const ValType typed = typed_ref(70000);
  EXPECT_EQ(to_string(typed), "(ref null 70000)");
  EXPECT_EQ(to_string(non_null(typed)), "(ref 70000)");
  EXPECT_EQ(to_string(non_null(ValType::kFuncRef)), "(ref func)");
  EXPECT_EQ(to_string(non_null(ValType::kExternRef)), "(ref extern)");
  EXPECT_EQ(to_string(ValType::kFuncRef), "funcref");
}

TEST(TypedReferences, SubtypesAreNeverNullOrOfOneType) {
  const ValType func = ValType::kFuncRef, external = ValType::kExternRef, typed = typed_ref(1);
  EXPECT_TRUE(is_subtype(typed, func));
  EXPECT_TRUE(is_subtype(non_null(typed), func));
  EXPECT_TRUE(is_subtype(non_null(typed), non_null(func)));
  EXPECT_TRUE(is_subtype(non_null(typed), typed));
  EXPECT_TRUE(is_subtype(non_null(external), external));
  EXPECT_FALSE(is_subtype(typed, non_null(func)));
  EXPECT_FALSE(is_subtype(typed, non_null(typed)));
  EXPECT_FALSE(is_subtype(func, typed));
  EXPECT_FALSE(is_subtype(typed, typed_ref(2)));
  EXPECT_FALSE(is_subtype(typed, external));
  EXPECT_FALSE(is_subtype(external, func));
  EXPECT_FALSE(is_subtype(ValType::kI32, func));
}

// (ref null func) and funcref are two spellings of one type; the index of a type may take more bytes than it
// needs.
TEST(TypedReferences, AreReadInEverySpelling) {
  const auto m = decode_references(
      module({section(1, vec({func_type({}, {}), Bytes{0x60, 5, 0x63, 0x70, 0x64, 0x6f, 0x63, 0x6f, 0x64,
                                                       0x80, 0x00, 0x64, 1, 0}}))}));
  ASSERT_TRUE(m) << m.error().describe();
  EXPECT_EQ((*m)->types[1].params,
            (std::vector<ValType>{ValType::kFuncRef, non_null(ValType::kExternRef), ValType::kExternRef,
                                  non_null(typed_ref(0)), non_null(typed_ref(1))}));
}

TEST(TypedReferences, ABlockMayHaveOneAsItsResult) {
  const auto m = decode_references(R"((module (type $t (func)) (type $u (func)) (func (drop
    (block (result (ref null $u)) (ref.null $u))) (drop (select (result (ref null $u)) (ref.null $t) (ref.null $u)
    (i32.const 0))))))");
  ASSERT_TRUE(m) << m.error().describe();
  std::vector<Instr> all;
  for (InstrReader reader(**m, (*m)->bodies[0]); !reader.at_end();) reader.next(all.emplace_back());
  ASSERT_EQ(all.size(), 10u);
  EXPECT_EQ(all[0].block.result(0), typed_ref(0)) << "the first of two equal types";
  EXPECT_EQ(all[1].ref_type, typed_ref(0));
  EXPECT_EQ(all[7].opcode, Opcode::kSelectT);
  EXPECT_EQ(all[7].ref_type, typed_ref(0));
}

}  // namespace
}  // namespace hindsight::wasm
