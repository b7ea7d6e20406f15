#include "runtime/instance/table.h"

#include <gtest/gtest.h>

namespace hindsight::rt {
namespace {

TEST(Table, GrowsWithTheGivenValueUpToItsMaximum) {
  auto table = Table::create({.element = wasm::ValType::kExternRef, .limits = {.min = 2, .max = 5}});
  ASSERT_NE(table, nullptr);
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
  EXPECT_EQ(Table::create({.limits = {.min = 4'000'000'000u, .max = {}}}), nullptr);
  auto table = Table::create({.limits = {.min = 1, .max = {}}});
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->grow(4'000'000'000u, nullptr), std::nullopt);
  EXPECT_EQ(table->size(), 1u);
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
