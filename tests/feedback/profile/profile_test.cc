#include "feedback/profile/profile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "feedback/profile/profile_file.h"

namespace hindsight::feedback {
namespace {

// One function (index 0) with an outer loop [10, 90] and an inner loop [30, 60].
std::shared_ptr<wasm::Module> module_with_loops() {
  auto module = std::make_shared<wasm::Module>();
  module->name = "test";
  module->types.push_back({});
  module->functions.push_back(TypeIndex(0));
  wasm::FunctionBody body;
  body.begin = WasmOffset(5);
  body.end = WasmOffset(100);
  wasm::LoopInfo outer, inner;
  outer.offset = WasmOffset(10);
  outer.end = WasmOffset(90);
  inner.offset = WasmOffset(30);
  inner.end = WasmOffset(60);
  inner.depth = 1;
  inner.parent = LoopIndex(0);
  body.loops = {outer, inner};
  body.loop_frames.resize(1);
  // i32.load at 40 and 44, an i32.add at 47 that a code generator may fold the second into; the rest is nop.
  module->bytes.assign(100, 0x01);
  for (size_t at : {40, 44}) {
    module->bytes[at] = 0x28;
    module->bytes[at + 1] = 0x02;
    module->bytes[at + 2] = 0x00;
  }
  module->bytes[47] = 0x6a;
  module->bytes[99] = 0x0b;
  module->bodies.push_back(body);
  return module;
}

constexpr FuncIndex kFunction{0};

TEST(Profile, ALoopHasTheSamplesBetweenItsOpcodeAndItsEnd) {
  Profile profile(module_with_loops());
  profile.add_sample(kFunction, WasmOffset(7), false, 1e-3);   // before the loops
  profile.add_sample(kFunction, WasmOffset(20), false, 1e-3);  // outer
  profile.add_sample(kFunction, WasmOffset(40), false, 1e-3);  // inner
  profile.add_sample(kFunction, WasmOffset(50), false, 1e-3);  // inner
  profile.add_sample(kFunction, WasmOffset(95), false, 1e-3);  // after
  FunctionEvidence e = profile.evidence(kFunction);
  ASSERT_EQ(e.loops.size(), 2u);
  EXPECT_DOUBLE_EQ(e.loops[0].samples, 3);
  EXPECT_DOUBLE_EQ(e.loops[1].samples, 2);
  EXPECT_EQ(e.loops[1].parent, 0);
  EXPECT_DOUBLE_EQ(e.samples_baseline, 5);
  EXPECT_DOUBLE_EQ(e.total_samples, 5);
  EXPECT_NEAR(e.seconds_baseline, 5e-3, 1e-9);
}

TEST(Profile, ALoopsOwnSamplesAreThoseInBaselineCodeAndInNoInnerLoop) {
  Profile profile(module_with_loops());
  for (const uint32_t at : {7, 10, 20, 40, 50, 59, 60, 95})
    profile.add_sample(kFunction, WasmOffset(at), false, 1e-3);
  profile.add_sample(kFunction, WasmOffset(40), true, 1e-3);
  profile.add_sample(kFunction, WasmOffset(4000), false, 1e-3);  // of an inlined body
  profile.add_sample(kFunction, WasmOffset(~0u), false, 1e-3);
  profile.add_value(kFunction, WasmOffset(30), 12, false);
  profile.decay(0.5);
  const FunctionEvidence e = profile.evidence(kFunction);
  EXPECT_DOUBLE_EQ(e.loops[0].samples_baseline, 1.5);
  EXPECT_DOUBLE_EQ(e.loops[1].samples_baseline, 1.5);
  EXPECT_NEAR(e.loops[1].seconds_baseline, 1.5e-3, 1e-9);
  EXPECT_EQ(e.loops[0].code_bytes, 81u);
  EXPECT_EQ(e.loops[1].code_bytes, 31u);
  EXPECT_EQ(e.loops[1].no_nest, "");
  EXPECT_EQ(e.loops[0].inner_loops, 1u);
  EXPECT_EQ(e.loops[1].inner_loops, 0u);
  EXPECT_EQ(e.loops[0].trip_records, 0u);
  EXPECT_EQ(e.loops[1].trip_records, 1u);
  const LoopCounts& inner = profile.counts(kFunction).loops.at(1);
  EXPECT_EQ(inner.run_samples_baseline, 3);
  EXPECT_NEAR(inner.run_seconds_baseline, 3e-3, 1e-9);
}

TEST(Profile, SaysOfALoopWithSamplesWhatItIsAsANest) {
  const std::shared_ptr<wasm::Module> module = module_with_loops();
  module->bodies[0].loops[1].too_deep = true;
  Profile profile(module);
  profile.add_sample(kFunction, WasmOffset(20), false, 1e-3);
  EXPECT_EQ(profile.evidence(kFunction).loops[1].no_nest, "") << "nobody asked";
  profile.add_sample(kFunction, WasmOffset(40), true, 1e-3);
  const FunctionEvidence e = profile.evidence(kFunction);
  EXPECT_EQ(e.loops[0].no_nest, "");
  EXPECT_NE(e.loops[1].no_nest.find("63"), std::string::npos) << e.loops[1].no_nest;
}

TEST(Profile, LooksAtSoManyLoopsInEachOtherAndNoMore) {
  const std::shared_ptr<wasm::Module> module = module_with_loops();
  wasm::FunctionBody& body = module->bodies[0];
  body.loops.clear();
  for (uint32_t i = 0; i < 40; ++i) {
    wasm::LoopInfo loop;
    loop.offset = WasmOffset(5 + i);
    loop.end = WasmOffset(99 - i);
    if (i > 0) loop.parent = LoopIndex(i - 1);
    body.loops.push_back(loop);
  }
  Profile profile(module);
  profile.add_sample(kFunction, WasmOffset(50), false, 1e-3);
  for (int i = 0; i < 2; ++i) {
    const FunctionEvidence e = profile.evidence(kFunction);
    EXPECT_EQ(e.loops[39].no_nest, "");
    EXPECT_EQ(e.loops[20].no_nest, "");
    EXPECT_EQ(e.loops[0].no_nest, "too many loops are around each other");
    EXPECT_EQ(e.loops[0].code_bytes, 95u);
  }
}

TEST(Profile, SamplesInANestAreTheNestsAndNeitherStayedNorOfTheWholeVersion) {
  Profile profile(module_with_loops());
  FunctionCounts& counts = profile.counts(kFunction);
  const auto sample = [&](uint64_t version) {
    profile.add_sample(kFunction, WasmOffset(40), true, 1e-3, VersionId(version), LoopIndex(1));
  };
  counts.nests[1].under_way = true;
  EXPECT_TRUE(profile.evidence(kFunction).loops[1].has_nest);
  counts.publish_nest(LoopIndex(1), VersionId(5));
  sample(5);
  counts.publish(VersionId(10));
  sample(5);
  EXPECT_EQ(counts.samples_stayed, 0);
  EXPECT_EQ(counts.nests[1].samples_optimized, 2);
  EXPECT_NEAR(counts.nests[1].seconds_optimized, 2e-3, 1e-9);
  counts.publish_nest(LoopIndex(1), VersionId(12));
  sample(5);
  EXPECT_EQ(counts.nests[1].samples_optimized, 2) << "in code that was replaced";
  sample(12);
  EXPECT_EQ(counts.nests[1].samples_optimized, 3);
  EXPECT_NEAR(counts.nests[1].seconds_when_published, 2e-3, 1e-9);
  const FunctionEvidence e = profile.evidence(kFunction);
  EXPECT_FALSE(e.optimized);
  EXPECT_NEAR(e.seconds_since_published, 0, 1e-9);
  EXPECT_EQ(e.samples_optimized, 4);
  EXPECT_TRUE(e.loops[1].has_nest);
  EXPECT_FALSE(e.loops[0].has_nest);
  profile.decay(0.5);
  EXPECT_EQ(counts.nests[1].samples_optimized, 1.5);
  EXPECT_NEAR(counts.nests[1].seconds_when_published, 1e-3, 1e-9);
  EXPECT_NEAR(counts.nests[1].run_seconds_optimized, 3e-3, 1e-9);
}

TEST(Profile, SaysOfANestThatItsCodeCameEarlyAsLongAsItHasCode) {
  Profile profile(module_with_loops());
  FunctionCounts& counts = profile.counts(kFunction);
  profile.add_sample(kFunction, WasmOffset(40), false, 1e-3);
  for (const uint64_t version : {5, 0}) {
    counts.nests[1] = {.version = version, .early = true};
    EXPECT_EQ(profile.evidence(kFunction).loops[1].early, version != 0);
  }
}

TEST(Profile, BaselineCodeThatIsToBeSeenAnewHasNoNestsButWhatTheyCost) {
  Profile profile(module_with_loops());
  FunctionCounts& counts = profile.counts(kFunction);
  profile.add_sample(kFunction, WasmOffset(40), false, 1e-3);
  counts.nests[1] = {.version = 5, .compiles = 3, .fruitless = 1, .compile_seconds = 0.02};
  counts.see_anew();
  const LoopEvidence e = profile.evidence(kFunction).loops[1];
  EXPECT_FALSE(e.has_nest);
  EXPECT_EQ(e.samples_baseline, 0);
  EXPECT_EQ(e.compiles, 3u);
  EXPECT_EQ(e.fruitless, 1u);
  EXPECT_EQ(e.compile_seconds, 0.02);
  EXPECT_EQ(counts.loops.at(1).run_samples_baseline, 1);
  // The next run knows what it took, if it is the same loop.
  Profile next(module_with_loops());
  FunctionEvidence earlier = profile.evidence(kFunction);
  next.seed(earlier);
  EXPECT_EQ(next.evidence(kFunction).loops[1].compile_seconds, 0.02);
  EXPECT_EQ(next.evidence(kFunction).loops[1].compiles, 0u);
  earlier.loops[1].offset = WasmOffset(31);
  Profile other(module_with_loops());
  other.seed(earlier);
  EXPECT_EQ(other.evidence(kFunction).loops[1].compile_seconds, 0);
}

TEST(Profile, LoadsComeByStallWithTheirAddresses) {
  Profile profile(module_with_loops());
  uint64_t low = 0x1000, high = 0x9008;
  profile.add_stall(kFunction, WasmOffset(40), false, &low);
  profile.add_stall(kFunction, WasmOffset(44), false, &low);
  profile.add_stall(kFunction, WasmOffset(44), true, &high);
  profile.add_stall(kFunction, WasmOffset(44), true, nullptr);
  FunctionEvidence e = profile.evidence(kFunction);
  ASSERT_EQ(e.loads.size(), 2u);
  EXPECT_EQ(e.loads[0].load, WasmOffset(44));
  EXPECT_DOUBLE_EQ(e.loads[0].stall_samples, 3);
  EXPECT_DOUBLE_EQ(e.loads[0].stall_samples_optimized, 2);
  EXPECT_EQ(e.loads[0].addresses, 2u);
  EXPECT_EQ(e.loads[0].address_span_bytes, 0x8008u);
  EXPECT_EQ(e.loads[0].distinct_pages, 2u);
}

TEST(Profile, AStallBehindAFoldedLoadIsChargedToTheLoad) {
  Profile profile(module_with_loops());
  EXPECT_TRUE(profile.add_stall(kFunction, WasmOffset(47), true, nullptr));
  EXPECT_FALSE(profile.add_stall(kFunction, WasmOffset(20), true, nullptr)) << "no load in front";
  FunctionEvidence e = profile.evidence(kFunction);
  ASSERT_EQ(e.loads.size(), 1u);
  EXPECT_EQ(e.loads[0].load, WasmOffset(44));
}

TEST(Profile, AStallInWhatAChangeAddedToALoopIsChargedToNoLoadInFrontOfTheLoop) {
  const std::shared_ptr<wasm::Module> module = module_with_loops();
  module->bytes[70] = 0x03;  // loop
  Profile profile(module);
  EXPECT_TRUE(profile.add_stall(kFunction, WasmOffset(69), true, nullptr));
  EXPECT_FALSE(profile.add_stall(kFunction, WasmOffset(70), true, nullptr));
  EXPECT_TRUE(profile.add_stall(kFunction, WasmOffset(71), true, nullptr));
}

TEST(Profile, AStallBehindAStoreIsChargedToTheStore) {
  const std::shared_ptr<wasm::Module> module = module_with_loops();
  module->bytes[50] = 0x36;  // i32.store
  Profile profile(module);
  for (const uint64_t address : {0x5000, 0x9000, 0x1000, 0x2000})
    EXPECT_TRUE(profile.add_store_stall(kFunction, WasmOffset(50), true, address));
  EXPECT_FALSE(profile.add_store_stall(kFunction, WasmOffset(44), true, 0x5000)) << "a load";
  const FunctionEvidence e = profile.evidence(kFunction);
  ASSERT_EQ(e.loads.size(), 1u);
  EXPECT_EQ(e.loads[0].load, WasmOffset(50));
  EXPECT_TRUE(e.loads[0].is_store);
  EXPECT_DOUBLE_EQ(e.loads[0].stall_samples_optimized, 4);
  EXPECT_EQ(e.loads[0].addresses, 4u);
  EXPECT_EQ(e.loads[0].address_span_bytes, 0x8000u);
  EXPECT_EQ(e.loads[0].rising_addresses, 2u);
  EXPECT_EQ(profile.page_evidence().addresses, 0u);
}

TEST(Profile, CountsFade) {
  Profile profile(module_with_loops());
  profile.add_sample(kFunction, WasmOffset(40), false, 1e-3);
  profile.add_stall(kFunction, WasmOffset(40), false, nullptr);
  profile.decay(0.5);
  FunctionEvidence e = profile.evidence(kFunction);
  EXPECT_DOUBLE_EQ(e.samples_baseline, 0.5);
  EXPECT_DOUBLE_EQ(e.loads[0].stall_samples, 0.5);
  EXPECT_DOUBLE_EQ(e.loops[1].samples, 0.5);
  EXPECT_DOUBLE_EQ(e.total_samples, 0.5);
}

TEST(Profile, AFunctionNobodySawHasEmptyEvidence) {
  Profile profile(module_with_loops());
  FunctionEvidence e = profile.evidence(kFunction);
  EXPECT_EQ(e.samples_baseline, 0);
  EXPECT_FALSE(e.name.empty());
}

TEST(Profile, PagesSeenAreBounded) {
  Profile profile(module_with_loops());
  for (uint64_t i = 0; i < 4 * kMaxPagesSeen; ++i) {
    uint64_t address = i << 12;
    profile.add_stall(kFunction, WasmOffset(40), false, &address);
  }
  EXPECT_EQ(profile.evidence(kFunction).loads[0].distinct_pages, kMaxPagesSeen);
}

TEST(Profile, StalledAddressesCountByRegionUntilTheRegionIsSettledAndAgainWhenItIsReopened) {
  Profile profile(module_with_loops());
  for (uint64_t i = 0; i < 6; ++i) {
    const uint64_t address = kHugePageBytes * (100 + i / 2) + 4096 * i;
    profile.add_stall(kFunction, WasmOffset(40), false, &address);
  }
  PageEvidence e = profile.page_evidence();
  EXPECT_EQ(e.addresses, 6u);
  EXPECT_EQ(e.distinct_pages, 6u);
  EXPECT_EQ(e.regions, (std::vector<PageEvidence::Region>{{100, 2}, {101, 2}, {102, 2}}));
  profile.pages().settle(100 * kHugePageBytes, 102 * kHugePageBytes);
  const uint64_t settled = 100 * kHugePageBytes + 12345;
  profile.add_stall(kFunction, WasmOffset(40), false, &settled);
  e = profile.page_evidence();
  EXPECT_EQ(e.addresses, 2u);
  EXPECT_EQ(e.distinct_pages, 2u);
  EXPECT_EQ(e.stall_samples, 2) << "in regions that are not settled";
  profile.decay(0.5);
  e = profile.page_evidence();
  EXPECT_EQ(e.regions, (std::vector<PageEvidence::Region>{{102, 2}}));
  profile.pages().reopen(101 * kHugePageBytes, 102 * kHugePageBytes);
  const uint64_t reopened = 101 * kHugePageBytes + 12345;
  profile.add_stall(kFunction, WasmOffset(40), false, &settled);
  profile.add_stall(kFunction, WasmOffset(40), false, &reopened);
  EXPECT_EQ(profile.page_evidence().regions, (std::vector<PageEvidence::Region>{{101, 1}, {102, 2}}));
}

TEST(Profile, TimeOfStallsCountsFromTheFirstOneInTheirRegionsOn) {
  Profile profile(module_with_loops());
  const auto run = [&](int samples) {
    for (int i = 0; i < samples; ++i) profile.add_sample(kFunction, WasmOffset(40), false, 0.25);
  };
  const auto stall = [&](uint64_t region) {
    run(1);
    const uint64_t address = kHugePageBytes * region + 64;
    profile.add_stall(kFunction, WasmOffset(40), false, &address);
  };
  run(40);
  stall(100);
  run(8);
  for (int i = 0; i < 3; ++i) stall(200);
  run(4);
  PageEvidence e = profile.page_evidence();
  EXPECT_EQ(e.samples, 16);
  EXPECT_EQ(e.seconds, 0.25 * 15);
  EXPECT_EQ(e.stall_samples, 4);
  EXPECT_EQ(e.seconds_idle, 1);
  profile.pages().settle(100 * kHugePageBytes, 101 * kHugePageBytes);
  e = profile.page_evidence();
  EXPECT_EQ(e.samples, 7) << "what stalled before is settled";
  EXPECT_EQ(e.seconds, 0.25 * 6);
  EXPECT_EQ(e.stall_samples, 3);
  profile.pages().settle(200 * kHugePageBytes, 201 * kHugePageBytes);
  EXPECT_EQ(profile.page_evidence(), PageEvidence());
}

TEST(ValueCounts, KeepWhatIsFrequentAndBoundTheRest) {
  ValueCounts counts;
  for (uint64_t i = 0; i < 10'000; ++i) counts.add(i % 3 == 0 ? 42 : i);
  EXPECT_EQ(counts.total, 10'000u);
  EXPECT_LE(counts.candidates.size(), ValueCounts::kCandidates);
  const auto found = std::find_if(counts.candidates.begin(), counts.candidates.end(),
                                  [](const auto& c) { return c.value == 42; });
  ASSERT_NE(found, counts.candidates.end()) << "a third of the records is more than one in nine";
  EXPECT_LE(found->count, 3'334u);
  EXPECT_GE(found->count + 10'000 / (ValueCounts::kCandidates + 1), 3'334u);
}

TEST(Profile, ALoadThatComesBackToAFewPagesSaysNothingAboutOthersThatDoNot) {
  Profile profile(module_with_loops());
  for (uint64_t i = 0; i < 1000; ++i) {
    profile.add_sample(kFunction, WasmOffset(40), false, 1e-3);
    const uint64_t table = 64 * (i % 128), record = (uint64_t{1} << 30) + 8192 * i;
    profile.add_stall(kFunction, WasmOffset(40), false, &table);
    if (i % 10 == 0) profile.add_stall(kFunction, WasmOffset(44), false, &record);
  }
  const PageEvidence e = profile.page_evidence();
  EXPECT_LE(e.addresses, 110u);
  EXPECT_GE(e.distinct_pages, 100u);
  EXPECT_EQ(e.stall_samples, static_cast<double>(e.addresses));
  const FunctionEvidence of_function = profile.evidence(kFunction);
  ASSERT_EQ(of_function.loads.size(), 2u);
  EXPECT_EQ(of_function.loads[0].addresses, 1000u) << "what is known of the load is not touched by that";
}

TEST(Profile, MissesThatADecisionHidesAreStillCountedForPages) {
  Profile profile(module_with_loops());
  const uint64_t address = 4096;
  for (int i = 0; i < 10; ++i) profile.add_sample(kFunction, WasmOffset(40), false, 1e-3);
  for (int i = 0; i < 8; ++i) profile.add_stall(kFunction, WasmOffset(40), false, &address);
  EXPECT_EQ(profile.page_evidence().hidden_share, 0);
  for (int i = 0; i < 30; ++i) profile.add_sample(kFunction, WasmOffset(40), true, 1e-3);
  for (int i = 0; i < 10; ++i) profile.add_sample(FuncIndex(kFunction.value + 1), WasmOffset(0), true, 1e-3);
  using enum jit::ChangeKind;
  FunctionCounts& counts = profile.counts(kFunction);
  for (const jit::ChangeKind kind : {kPrefetch, kInterleave, kJumpPointers}) {
    const jit::Site site{kind, WasmOffset(counts.loads.begin()->first)};
    counts.begin(site);
    EXPECT_EQ(profile.page_evidence().hidden_share, 0);
    counts.settle(site, ChangeState::kKept);
    EXPECT_DOUBLE_EQ(profile.page_evidence().hidden_share, 0.8 * 40 / 50);
    counts.settle(site, ChangeState::kRolledBack);
  }
}

TEST(Profile, ValuesOfIndirectCallsAreTheElementsTheyWentThrough) {
  const std::shared_ptr<const wasm::Module> module = module_with_loops();
  const_cast<wasm::Module&>(*module).bytes[70] = 0x11;  // call_indirect
  Profile profile(module);
  for (int i = 0; i < 10; ++i) profile.add_value(kFunction, WasmOffset(70), i < 7 ? 3 : 9, false);
  profile.add_value(kFunction, WasmOffset(50), 8, false);  // a divisor
  const FunctionEvidence e = profile.evidence(kFunction);
  ASSERT_EQ(e.calls.size(), 1u);
  EXPECT_EQ(e.calls[0].call, WasmOffset(70));
  EXPECT_EQ(e.calls[0].records, 10u);
  EXPECT_EQ(e.calls[0].targets, (std::vector<CallEvidence::Target>{{3, 7}, {9, 3}}));
}

TEST(Profile, CallsOfOptimizedCodeAreThoseItDidNotForesee) {
  const std::shared_ptr<const wasm::Module> module = module_with_loops();
  const_cast<wasm::Module&>(*module).bytes[70] = 0x11;  // call_indirect
  Profile profile(module);
  for (int i = 0; i < 8; ++i) profile.add_value(kFunction, WasmOffset(70), 3, false);
  for (int i = 0; i < 6; ++i) profile.add_value(kFunction, WasmOffset(70), i < 4 ? 5 : 6, true);
  FunctionEvidence e = profile.evidence(kFunction);
  ASSERT_EQ(e.calls.size(), 1u);
  EXPECT_EQ(e.calls[0].records, 8u);
  EXPECT_EQ(e.calls[0].unforeseen_records, 6u);
  EXPECT_EQ(e.calls[0].unforeseen, (std::vector<CallEvidence::Target>{{5, 4}, {6, 2}}));
  // A new version foresees them; what went before counts half.
  profile.counts(kFunction).publish();
  e = profile.evidence(kFunction);
  EXPECT_EQ(e.calls[0].unforeseen_records, 0u);
  EXPECT_EQ(e.calls[0].targets, (std::vector<CallEvidence::Target>{{3, 4}, {5, 4}, {6, 2}}));
}

TEST(Profile, BranchesAddUpFromRecordsAndBurstsEachWithItsDenominator) {
  Profile profile(module_with_loops());
  for (int i = 0; i < 4; ++i) profile.add_branch(kFunction, WasmOffset(50), i == 0);
  profile.add_outcomes(kFunction, WasmOffset(50),
                       {.outcomes = 100, .taken = 40, .judged = 60, .mispredicted = 6});
  profile.add_outcomes(kFunction, WasmOffset(50),
                       {.outcomes = 100, .taken = 60, .judged = 90, .mispredicted = 24});
  profile.add_outcomes(kFunction, WasmOffset(20),
                       {.outcomes = 10, .taken = 10, .judged = 0, .mispredicted = 0});
  const FunctionEvidence e = profile.evidence(kFunction);
  ASSERT_EQ(e.branches.size(), 2u);
  const BranchEvidence& b = e.branches[0];
  EXPECT_EQ(b.branch, WasmOffset(50));
  EXPECT_EQ(b.sampled, 4u);
  EXPECT_EQ(b.sampled_taken, 1u);
  EXPECT_EQ(b.outcomes, 200u);
  EXPECT_DOUBLE_EQ(b.mispredict_rate(), 0.2);
  EXPECT_DOUBLE_EQ(b.taken_share(), 101.0 / 204);
  EXPECT_EQ(e.branches[1].mispredict_rate(), 0) << "nothing was judged";
}

TEST(Profile, SelectsAreKnownByTheValuesThatTheyChoseBy) {
  // (module (func (param i32) (result i32) (select (i32.const 7) (i32.const 9) (local.get 0))))
  const std::vector<uint8_t> bytes = {0,    'a', 's',  'm',  1,    0,    0, 0,    1, 6,    1,
                                      0x60, 1,   0x7f, 1,    0x7f, 3,    2, 1,    0, 10,   11,
                                      1,    9,   0,    0x41, 7,    0x41, 9, 0x20, 0, 0x1b, 0x0b};
  const auto module = wasm::decode_module(bytes, "guest");
  ASSERT_TRUE(module);
  const auto at = static_cast<uint32_t>(std::find((*module)->bytes.begin(), (*module)->bytes.end(), 0x1b) -
                                        (*module)->bytes.begin());
  Profile profile(*module);
  for (int i = 0; i < 50; ++i) profile.add_value(kFunction, WasmOffset(at), i < 2 ? 0 : 1, false);
  const FunctionEvidence e = profile.evidence(kFunction);
  EXPECT_TRUE(e.calls.empty());
  const BranchEvidence select{WasmOffset(at), 50, 48, 0, 0, 0, 0, true};
  EXPECT_EQ(e.branches, std::vector<BranchEvidence>{select});
  // The next run goes on from there, and knows what became of it.
  FunctionEvidence earlier = e;
  const jit::Site site{jit::ChangeKind::kBranch, WasmOffset(at)};
  earlier.changes.settle(site, ChangeState::kRolledBack);
  Profile next(*module);
  next.seed(earlier);
  next.add_value(kFunction, WasmOffset(at), 0, false);
  ASSERT_EQ(next.evidence(kFunction).branches.size(), 1u);
  EXPECT_EQ(next.evidence(kFunction).branches[0], (BranchEvidence{WasmOffset(at), 51, 48, 0, 0, 0, 0, true}));
  EXPECT_EQ(next.evidence(kFunction).changes.state(site), ChangeState::kRolledBack);
}

TEST(Profile, OperandsOfDivisionsCopiesAndFillsAreKnownByTheirMostFrequentValues) {
  // (module (memory 1) (func (param i32) (drop (i64.rem_u (i64.const 9) (i64.const 7)))
  //   (drop (i32.div_s (i32.const 9) (local.get 0))) (memory.fill (local.get 0) (local.get 0) (local.get 0))))
  const std::vector<uint8_t> bytes = {0,    'a',  's',  'm',  1,    0,    0,    0,    1,    5,    1, 0x60, 1,
                                      0x7f, 0,    3,    2,    1,    0,    5,    3,    1,    0,    1, 10,   25,
                                      1,    23,   0,    0x42, 9,    0x42, 7,    0x82, 0x1a, 0x41, 9, 0x20, 0,
                                      0x6d, 0x1a, 0x20, 0,    0x20, 0,    0x20, 0,    0xfc, 11,   0, 0x0b};
  const auto module = wasm::decode_module(bytes, "guest");
  ASSERT_TRUE(module) << module.error().describe();
  const auto at = [&](uint8_t opcode) {
    return WasmOffset(static_cast<uint32_t>(
        std::find((*module)->bytes.begin() + 28, (*module)->bytes.end(), opcode) - (*module)->bytes.begin()));
  };
  Profile profile(*module);
  for (int i = 0; i < 50; ++i) profile.add_value(kFunction, at(0x82), i < 2 ? 3 : ~uint64_t{0}, false);
  for (int i = 0; i < 20; ++i) profile.add_value(kFunction, at(0x6d), 5, false);
  for (int i = 0; i < 70; ++i) profile.add_value(kFunction, at(0xfc), i % 2 ? 64 : 24, false);
  const FunctionEvidence e = profile.evidence(kFunction);
  EXPECT_TRUE(e.calls.empty());
  EXPECT_TRUE(e.branches.empty());
  EXPECT_EQ(e.values,
            (std::vector<ValueEvidence>{{at(0xfc), ValueSite::kByteCount, 70, {{24, 35}, {64, 35}}},
                                        {at(0x82), ValueSite::kWideDivisor, 50, {{~uint64_t{0}, 48}, {3, 2}}},
                                        {at(0x6d), ValueSite::kDivisor, 20, {{5, 20}}}}));
  // The next run goes on from there, and knows what became of it.
  FunctionEvidence earlier = e;
  const jit::Site site{jit::ChangeKind::kValue, at(0xfc)};
  earlier.changes.settle(site, ChangeState::kRolledBack);
  Profile next(*module);
  next.seed(earlier);
  next.add_value(kFunction, at(0xfc), 64, false);
  EXPECT_EQ(next.evidence(kFunction).values[0],
            (ValueEvidence{at(0xfc), ValueSite::kByteCount, 71, {{64, 36}, {24, 35}}}));
  EXPECT_EQ(next.evidence(kFunction).changes.state(site), ChangeState::kRolledBack);
}

TEST(Profile, OfManyBranchesTheWorstAreKept) {
  Profile profile(module_with_loops());
  for (uint32_t i = 0; i < 2 * kMaxBranches; ++i)
    profile.add_outcomes(kFunction, WasmOffset(i),
                         {.outcomes = 100, .taken = 1, .judged = 100, .mispredicted = i});
  const FunctionEvidence e = profile.evidence(kFunction);
  ASSERT_EQ(e.branches.size(), kMaxBranches);
  EXPECT_EQ(e.branches[0].mispredicted, 2 * kMaxBranches - 1);
  EXPECT_EQ(e.branches.back().mispredicted, kMaxBranches);
}

TEST(Profile, ATimedLoadIsFoundFromTheInstructionThatItWasFoldedInto) {
  Profile profile(module_with_loops());
  EXPECT_EQ(profile.latency(kFunction, WasmOffset(44)), nullptr);
  profile.set_latency(kFunction, WasmOffset(44), {.level = MemoryLevel::kL3, .timed = 64, .cycles = 47});
  ASSERT_NE(profile.latency(kFunction, WasmOffset(47)), nullptr);
  EXPECT_EQ(profile.latency(kFunction, WasmOffset(47))->cycles, 47u);
  EXPECT_EQ(profile.latency(kFunction, WasmOffset(43)), nullptr) << "another load";
  const FunctionEvidence e = profile.evidence(kFunction);
  ASSERT_EQ(e.loads.size(), 1u);
  EXPECT_EQ(e.loads[0].latency.level, MemoryLevel::kL3);
}

TEST(Profile, SamplesOfTheWholeRunDoNotDecay) {
  Profile profile(module_with_loops());
  for (int i = 0; i < 8; ++i) profile.add_sample(FuncIndex(0), WasmOffset(47), i >= 4, 0.004);
  ASSERT_TRUE(profile.add_stall(FuncIndex(0), WasmOffset(47), false, nullptr));
  for (int i = 0; i < 20; ++i) profile.decay(0.5);
  EXPECT_LT(profile.evidence(FuncIndex(0)).samples_baseline, 0.01);
  const FunctionSamples samples = profile.run_samples(FuncIndex(0));
  EXPECT_EQ(samples.samples, 8);
  EXPECT_NEAR(samples.seconds_baseline, 0.016, 1e-9);
  EXPECT_NEAR(samples.seconds_optimized, 0.016, 1e-9);
  EXPECT_EQ(samples.begin, WasmOffset(5));
  // The stall is the load's, which stands in front.
  EXPECT_EQ(samples.places,
            (std::vector<FunctionSamples::Place>{{WasmOffset(44), 0, 1}, {WasmOffset(47), 8, 0}}));
}

TEST(Profile, AVersionThatStaysIsLookedAtAnewAndKeepsWhereItsFirstSamplesStood) {
  Profile profile(module_with_loops());
  const FuncIndex f = kFunction;
  FunctionCounts& counts = profile.counts(f);
  counts.optimized = true;
  counts.publish(VersionId(7), {LoopIndex(1)}, {LoopIndex(0)});
  for (int i = 0; i < 400; ++i)
    profile.add_sample(f, WasmOffset(i < 300 ? 20 : 70), true, 0.001, VersionId(7));
  for (int i = 0; i < 10; ++i) profile.add_sample(f, WasmOffset(20), false, 0.001);
  profile.add_value(f, WasmOffset(20), 3, true);
  const FunctionEvidence before = profile.evidence(f);
  EXPECT_EQ(before.samples_left_behind, 10);
  counts.stay();
  const FunctionEvidence e = profile.evidence(f);
  EXPECT_EQ(e.samples_left_behind, 0);
  EXPECT_TRUE(counts.unforeseen.empty());
  EXPECT_EQ(e.moved_share, before.moved_share);
  EXPECT_EQ(e.exit_loops, before.exit_loops);
  EXPECT_EQ(e.entry_loops, before.entry_loops);
  EXPECT_EQ(counts.published_version, 7u);
}

TEST(Profile, WhatIsSeenAnewKeepsTheWholeRunsTimeAndNothingElse) {
  Profile profile(module_with_loops());
  const FuncIndex f = kFunction;
  const WasmOffset at(20);
  FunctionCounts& counts = profile.counts(f);
  for (int i = 0; i < 10; ++i) profile.add_sample(f, at, false, 0.001);
  counts.optimized = true;
  counts.optimize_count = 2;
  counts.publish(VersionId(7));
  for (int i = 0; i < 400; ++i)
    profile.add_sample(f, WasmOffset(i < 300 ? 20 : 70), true, 0.001, VersionId(7));
  profile.add_branch(f, at, true);
  profile.add_value(f, at, 3, true);
  EXPECT_GT(profile.evidence(f).moved_share, 0.8);
  counts.see_anew();
  const FunctionEvidence e = profile.evidence(f);
  EXPECT_FALSE(e.optimized);
  EXPECT_EQ(e.moved_share, 0);
  EXPECT_EQ(e.samples_baseline + e.samples_optimized, 0);
  EXPECT_TRUE(e.branches.empty());
  EXPECT_TRUE(e.calls.empty());
  EXPECT_EQ(e.optimize_count, 2u);
  EXPECT_NEAR(e.seconds_run, 0.41, 1e-9);
  EXPECT_EQ(profile.run_samples(f).samples, 410u);
}

TEST(Profile, GoesOnFromWhatAnEarlierRunKnew) {
  FunctionEvidence earlier;
  earlier.function = FuncIndex(0);
  earlier.compile_seconds = 0.04;
  earlier.samples_baseline = 100;
  earlier.loads = {{.load = WasmOffset(40), .stall_samples = 50},
                   {.load = WasmOffset(44), .stall_samples = 50}};
  const jit::Site kept{jit::ChangeKind::kPrefetch, WasmOffset(40)};
  earlier.changes.settle(kept, ChangeState::kKept);
  earlier.changes.settle({jit::ChangeKind::kPrefetch, WasmOffset(44)}, ChangeState::kInTrial);
  earlier.branches = {{WasmOffset(50), 7, 3, 100, 90, 80, 10}};
  Profile profile(module_with_loops());
  profile.seed(earlier);
  profile.add_branch(FuncIndex(0), WasmOffset(50), true);
  const FunctionEvidence evidence = profile.evidence(FuncIndex(0));
  EXPECT_EQ(evidence.samples_baseline, 0);  // whether it is hot shows again
  EXPECT_EQ(evidence.compile_seconds, 0.04);
  ASSERT_EQ(evidence.loads.size(), 1u);  // a trial that never ended says nothing
  EXPECT_EQ(evidence.changes, (ChangeLedger{{kept, {.state = ChangeState::kKept}}}));
  EXPECT_EQ(evidence.loads[0].stall_samples, 0);
  EXPECT_EQ(evidence.branches, (std::vector<BranchEvidence>{{WasmOffset(50), 8, 4, 100, 90, 80, 10}}));
  EXPECT_TRUE(profile.run_samples(FuncIndex(0)).places.empty());
}

TEST(Profile, KeepsTheDearestPlacesInTheirOrder) {
  std::vector<FunctionSamples::Place> places;
  for (uint32_t i = 0; i < 10; ++i)
    places.push_back({WasmOffset(i), i == 3 ? 50.0 : 1.0 * i, i == 5 ? 90.0 : 0});
  keep_dearest(places, 3);
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].offset, WasmOffset(3));
  EXPECT_EQ(places[1].offset, WasmOffset(5));
  EXPECT_EQ(places[2].offset, WasmOffset(9));
}

TEST(Profile, SamplesInAVersionThatLostATrialStandInCodeThatWasReplaced) {
  Profile profile(module_with_loops());
  FunctionCounts& counts = profile.counts(kFunction);
  counts.publish(VersionId(10));
  const auto sample = [&](uint64_t version) {
    profile.add_sample(kFunction, WasmOffset(40), true, 1e-3, VersionId(version));
    return counts.samples_stayed;
  };
  EXPECT_EQ(sample(10), 0);
  EXPECT_EQ(sample(12), 0) << "on trial: as good as the published one";
  EXPECT_EQ(sample(9), 1);
  counts.unforeseen[50].add(3);
  const double since = counts.run_seconds_when_published;
  counts.publish_again(VersionId(12));
  EXPECT_EQ(counts.samples_stayed, 0);
  EXPECT_TRUE(counts.unforeseen.empty()) << "calls of both versions";
  EXPECT_EQ(counts.run_seconds_when_published, since);
  EXPECT_EQ(sample(10), 0);
  EXPECT_EQ(sample(12), 1);
  // A copy of the published one that was moved.
  EXPECT_EQ(sample(13), 1);
  counts.publish(VersionId(20));
  EXPECT_TRUE(counts.lost_versions.empty());
  EXPECT_EQ(sample(12), 1);
}

TEST(Profile, WhatWasSeenOfTrialsOfVersionsIsForgottenWithTheRest) {
  Profile profile(module_with_loops());
  FunctionCounts& counts = profile.counts(kFunction);
  const jit::Site site = version_site(jit::ChangeKind::kWeighBranches);
  counts.settle(site, ChangeState::kRolledBack);
  const FunctionEvidence evidence = profile.evidence(kFunction);
  EXPECT_EQ(evidence.changes.state(site), ChangeState::kRolledBack);
  Profile next(module_with_loops());
  next.seed(evidence);
  EXPECT_EQ(next.evidence(kFunction).changes, evidence.changes);
  counts.see_anew();
  EXPECT_TRUE(profile.evidence(kFunction).changes.empty());
}

TEST(Profile, KnowsOfANestWhetherItsSamplesMovedAndItsCallsWereForeseen) {
  Profile profile(module_with_loops());
  FunctionCounts& counts = profile.counts(kFunction);
  const LoopIndex root(0);
  counts.publish_nest(root, VersionId(10));
  const auto sample = [&](uint32_t at) {
    profile.add_sample(kFunction, WasmOffset(at), true, 1e-3, VersionId(10), root);
  };
  for (size_t i = 0; i < SampleShift::kSettling + SampleShift::kReference; ++i) sample(40);
  for (size_t i = 0; i < SampleShift::kRecent; ++i) sample(60);
  EXPECT_GT(counts.nests.at(0).shift.share(), 0.5);
  EXPECT_EQ(counts.shift.share(), 0) << "of the function's own code nothing was seen";
  counts.publish_nest(root, VersionId(11));
  EXPECT_EQ(counts.nests.at(0).shift.share(), 0);
  EXPECT_EQ(counts.nests.at(0).run_seconds_when_published, counts.nests.at(0).run_seconds_optimized);

  counts.unforeseen[50].add(3);
  counts.unforeseen[500].add(3);
  counts.foresee_calls(WasmOffset(40), WasmOffset(100));
  EXPECT_EQ(counts.unforeseen.size(), 1u);
  EXPECT_TRUE(counts.unforeseen.contains(500)) << "of other code";
  EXPECT_TRUE(counts.values.contains(50));
}

}  // namespace
}  // namespace hindsight::feedback
