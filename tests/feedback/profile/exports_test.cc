// Profiles for other tools: branch hints in a copy of the module, pprof, LLVM's sample profiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "feedback/profile/branch_hint_section.h"
#include "feedback/profile/llvm_sample_profile.h"
#include "feedback/profile/pprof.h"
#include "jit/wasm/branch_hints.h"
#include "tests/jit/wasm/module_bytes.h"

namespace hindsight::feedback {
namespace {

using namespace wasm::testing;  // NOLINT: the vocabulary of bytes
using testing::ElementsAre;
using testing::HasSubstr;

// local.get 0; if; end; block; local.get 0; br_if 0; end, after `locals`.
Bytes branches(const Bytes& locals) {
  const Bytes code = locals + Bytes{0x20, 0, 0x04, 0x40, 0x0b, 0x02, 0x40, 0x20, 0, 0x0d, 0, 0x0b, 0x0b};
  return leb(code.size()) + code;
}
constexpr uint32_t kIf = 2, kBrIf = 9;  // from the first instruction

Bytes hints(const Bytes& contents) {
  return section(0, text(wasm::kBranchHintSection) + contents);
}

// An imported function, function 1 without locals and function 2 with some; a custom section before and
// after the code.
std::shared_ptr<const wasm::Module> module_with(const Bytes& in_front_of_code = {}) {
  const Bytes bytes = module(
      {section(1, vec({func_type({kI32}, {})})), section(2, vec({text("m") + text("f") + Bytes{0, 0}})),
       section(0, text("first") + Bytes{1, 2, 3}), section(3, vec({{0}, {0}})), in_front_of_code,
       section(10, vec({branches({0}), branches({1, 3, kI64})})), section(0, text("last") + Bytes{4})});
  auto decoded = wasm::decode_module(bytes, "guest");
  EXPECT_TRUE(decoded) << decoded.error().describe();
  return *decoded;
}

FunctionEvidence seen(const wasm::Module& module, uint32_t function,
                      std::vector<std::tuple<uint32_t, uint64_t, uint64_t>> branches) {
  FunctionEvidence e;
  e.function = FuncIndex(function);
  for (const auto& [at, taken, outcomes] : branches) {
    BranchEvidence b;
    b.branch = WasmOffset(module.body(e.function).begin.value + at);
    b.outcomes = outcomes;
    b.taken = taken;
    e.branches.push_back(b);
  }
  return e;
}

ModuleProfile profile_of(const wasm::Module& module, std::vector<FunctionEvidence> functions) {
  ModuleProfile m;
  m.hash_hex = module.content_hash_hex();
  m.functions = std::move(functions);
  return m;
}

TEST(BranchHintSection, HintsWhatNearlyAlwaysGoesOneWay) {
  const auto module = module_with();
  const auto hinted =
      with_branch_hints(profile_of(*module, {seen(*module, 2, {{kIf, 3, 1000}, {kBrIf, 990, 1000}}),
                                             seen(*module, 1, {{kBrIf, 100, 100}})}),
                        *module);
  ASSERT_TRUE(hinted) << hinted.error().describe();
  EXPECT_EQ(hinted->likely, 2u);
  EXPECT_EQ(hinted->unlikely, 1u);
  const auto again = wasm::decode_module(hinted->bytes, "hinted").value();
  ASSERT_EQ(again->branch_hints.size(), 3u);
  EXPECT_EQ(again->decode_stats.branch_hint_errors, 0u);
  for (uint32_t f : {1u, 2u}) {
    const uint32_t begin = again->body(FuncIndex(f)).begin.value;
    EXPECT_EQ(again->branch_hint(WasmOffset(begin + kBrIf)), true);
    EXPECT_EQ(again->branch_hint(WasmOffset(begin + kIf)), f == 1 ? std::nullopt : std::optional(false));
  }
}

TEST(BranchHintSection, ChangesNothingElse) {
  const auto module = module_with();
  const auto hinted =
      with_branch_hints(profile_of(*module, {seen(*module, 1, {{kIf, 0, 100}})}), *module).value();
  const auto again = wasm::decode_module(hinted.bytes, "hinted").value();
  std::vector<std::string> names;
  for (const wasm::CustomSection& section : again->custom_sections) names.push_back(section.name);
  EXPECT_THAT(names, ElementsAre("first", wasm::kBranchHintSection, "last"));
  const Bytes section_bytes =
      hints(vec({leb(1) + vec({leb(kIf + 1) + Bytes{1, 0}})}));  // one byte of locals in front
  EXPECT_EQ(hinted.bytes.size(), module->bytes.size() + section_bytes.size());
  EXPECT_NE(std::search(hinted.bytes.begin(), hinted.bytes.end(), section_bytes.begin(), section_bytes.end()),
            hinted.bytes.end());
  // Without a hint there is no section.
  EXPECT_EQ(with_branch_hints(profile_of(*module, {}), *module)->bytes, module->bytes);
}

TEST(BranchHintSection, GivesNoHintWhereBothWaysAreTakenOrNearlyNothingWasSeen) {
  const auto module = module_with();
  const auto hinted = with_branch_hints(
      profile_of(*module,
                 {seen(*module, 1, {{kIf, 500, 1000}, {kBrIf, kMinHintOutcomes - 1, kMinHintOutcomes - 1}})}),
      *module);
  ASSERT_TRUE(hinted);
  EXPECT_EQ(hinted->unclear, 2u);
  EXPECT_EQ(hinted->bytes, module->bytes);
}

TEST(BranchHintSection, ReplacesTheModulesOwnHintsWhereTheProfileKnowsBetter) {
  // Function 1: the if likely, the br_if unlikely.
  const auto module =
      module_with(hints(vec({leb(1) + vec({leb(kIf + 1) + Bytes{1, 1}, leb(kBrIf + 1) + Bytes{1, 0}})})));
  ASSERT_EQ(module->branch_hints.size(), 2u);
  const auto hinted =
      with_branch_hints(profile_of(*module, {seen(*module, 1, {{kIf, 0, 100}})}), *module).value();
  EXPECT_EQ(hinted.unlikely, 1u);
  EXPECT_EQ(hinted.kept, 1u);
  const auto again = wasm::decode_module(hinted.bytes, "hinted").value();
  EXPECT_EQ(again->branch_hints.size(), 2u);
  const uint32_t begin = again->body(FuncIndex(1)).begin.value;
  EXPECT_EQ(again->branch_hint(WasmOffset(begin + kIf)), false);
  EXPECT_EQ(again->branch_hint(WasmOffset(begin + kBrIf)), false);
  EXPECT_EQ(again->custom_sections.size(), 3u);
}

TEST(BranchHintSection, BelievesNoOffsetThatIsNoBranch) {
  const auto module = module_with();
  FunctionEvidence e =
      seen(*module, 1, {{kIf + 1, 100, 100}, {0, 100, 100}, {kBrIf - 1, 100, 100}, {1000, 100, 100}});
  e.branches.push_back({WasmOffset(~0u), 0, 0, 100, 100, 0, 0});
  FunctionEvidence imported = e, nobody = e;
  imported.function = FuncIndex(0);
  nobody.function = FuncIndex(77);
  const auto hinted = with_branch_hints(profile_of(*module, {e, imported, nobody}), *module);
  ASSERT_TRUE(hinted);
  EXPECT_EQ(hinted->bytes, module->bytes);
}

TEST(BranchHintSection, RefusesTheProfileOfAnotherModule) {
  const auto module = module_with();
  ModuleProfile other = profile_of(*module, {});
  other.hash_hex[0] ^= 1;
  const auto hinted = with_branch_hints(other, *module);
  ASSERT_FALSE(hinted);
  EXPECT_EQ(hinted.error().kind, ErrorKind::kUsage);
}

FunctionSamples samples(uint32_t function, std::string name, std::vector<FunctionSamples::Place> places) {
  FunctionSamples s;
  s.function = FuncIndex(function);
  s.name = std::move(name);
  s.begin = WasmOffset(100);
  s.places = std::move(places);
  for (const auto& place : s.places) s.samples += place.samples;
  s.seconds_optimized = s.samples / 250;
  return s;
}

TEST(LlvmSampleProfile, HasALineForEachInstructionThatWasSeen) {
  ModuleProfile m;
  m.samples = {
      samples(3, "main", {{WasmOffset(104), 7.4, 0}, {WasmOffset(110), 0.2, 9}, {WasmOffset(120), 3, 0}})};
  EXPECT_EQ(to_llvm_sample_profile(m, nullptr), "main:10:0\n 4: 7\n 20: 3\n");
}

TEST(LlvmSampleProfile, PutsWhatIsBeyond16BitsIntoTheDiscriminator) {
  ModuleProfile m;
  m.samples = {samples(3, "main", {{WasmOffset(100 + 0x20005), 2, 0}, {WasmOffset(~0u), 5, 0}})};
  EXPECT_EQ(to_llvm_sample_profile(m, nullptr), "main:7:0\n 5.2: 2\n");
}

TEST(LlvmSampleProfile, KeepsNamesApartAndReadable) {
  ModuleProfile m;
  m.samples = {samples(3, "a b::c(int)", {{WasmOffset(100), 2, 0}}),
               samples(4, "a_b__c(int)", {{WasmOffset(100), 1, 0}}),
               samples(5, "", {{WasmOffset(100), 1, 0}}), samples(6, "unseen", {})};
  EXPECT_EQ(to_llvm_sample_profile(m, nullptr),
            "a_b__c(int):2:0\n 0: 2\na_b__c(int).func4:1:0\n 0: 1\n_:1:0\n 0: 1\n");
}

TEST(LlvmSampleProfile, NamesTheTargetsOfCallsThatTheModuleShows) {
  const auto module = module_with();
  ModuleProfile m = profile_of(*module, {});
  FunctionEvidence e;
  e.function = FuncIndex(1);
  // Through a table the module shows nothing; by reference the function is known.
  e.calls = {{WasmOffset(105), 30, {{2, 20}, {900, 10}}, true}, {WasmOffset(106), 30, {{0, 30}}}};
  m.functions = {e};
  m.samples = {samples(1, "f", {{WasmOffset(105), 4, 0}})};
  EXPECT_EQ(to_llvm_sample_profile(m, module.get()), "f:4:0\n 5: 20 func[2]:20\n");
  EXPECT_EQ(to_llvm_sample_profile(m, nullptr), "f:4:0\n 5: 4\n");
}

TEST(Pprof, IsGzipped) {
  ProfileFile file;
  file.modules.resize(1);
  file.modules[0].samples = {samples(3, "main", {{WasmOffset(104), 7, 0}, {WasmOffset(~0u), 1e18, 1e18}})};
  const auto bytes = to_pprof(file);
  ASSERT_TRUE(bytes) << bytes.error().describe();
  ASSERT_GT(bytes->size(), 18u);
  EXPECT_EQ(static_cast<uint8_t>((*bytes)[0]), 0x1f);
  EXPECT_EQ(static_cast<uint8_t>((*bytes)[1]), 0x8b);
  EXPECT_TRUE(to_pprof({}));
}

}  // namespace
}  // namespace hindsight::feedback
