#include "runtime/instance/table.h"

#include <gtest/gtest.h>

namespace hindsight::rt {
namespace {

TEST(Table, GrowsWithTheGivenValueUpToItsMaximum) {
  auto made = Table::create({.element = wasm::ValType::kExternRef, .limits = {.min = 2, .max = 5}});
  ASSERT_TRUE(made);
  const auto& table = *made;
  EXPECT_EQ(table->get(1), nullptr);
  int value = 0;
  EXPECT_EQ(table->grow(3, &value), 2u);
  EXPECT_EQ(table->get(4), &value);
  EXPECT_EQ(table->record()->size, 5u);
  EXPECT_EQ(table->record()->elements[1], nullptr);
  EXPECT_EQ(table->grow(1, nullptr), std::nullopt);
  EXPECT_EQ(table->size(), 5u);
}

TEST(Table, IsRefusedOrStopsGrowingBeyondTheImplementationsLimit) {
  EXPECT_FALSE(Table::create({.limits = {.min = 4'000'000'000u, .max = {}}}));
  auto made = Table::create({.limits = {.min = 1, .max = {}}});
  ASSERT_TRUE(made);
  const auto& table = *made;
  EXPECT_EQ(table->grow(4'000'000'000u, nullptr), std::nullopt);
  EXPECT_EQ(table->size(), 1u);
}

TEST(Table, GivesBackWhatItTookOfTheBudget) {
  const auto budget = std::make_shared<StoreBudget>(StoreLimits{.table_bytes = 1000});
  {
    auto table = Table::create({.limits = {.min = 5, .max = {}}}, budget);
    ASSERT_TRUE(table);
    EXPECT_EQ(budget->table_bytes(), 40u);
    EXPECT_EQ((*table)->grow(100, nullptr), 5u);
    EXPECT_EQ((*table)->grow(100, nullptr), std::nullopt);
    EXPECT_LE(budget->table_bytes(), 1000u);
  }
  EXPECT_EQ(budget->table_bytes(), 0u);
}

TEST(Global, ReadsSmallValuesWithoutTheCellsUpperHalf) {
  jit::GlobalCell cell{};
  for (uint8_t& b : cell.bytes) b = 0xff;
  Global global({.type = wasm::ValType::kI32, .mutable_ = true}, &cell);
  EXPECT_EQ(global.bits(), 0xffffffffu);
  global.set_bits(7);
  EXPECT_EQ(cell.bytes[0], 7);
  EXPECT_EQ(global.bits(), 7u);
}

}  // namespace
}  // namespace hindsight::rt
