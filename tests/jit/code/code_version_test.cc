#include "jit/code/code_version.h"

#include <gtest/gtest.h>

namespace hindsight::jit {
namespace {

TEST(CodeVersion, KnowsWhereExceptionsOutOfACallLand) {
  auto arena = CodeArena::create(1 << 20).value();
  CodeVersion version;
  version.memory = arena->allocate(256).value();
  version.code_size = CodeOffset(256);
  // A call that ends at 20, and calls that end anywhere after 40 and up to 60.
  version.handlers = {{CodeOffset(19), CodeOffset(20), CodeOffset(100)},
                      {CodeOffset(40), CodeOffset(60), CodeOffset(200)}};
  const auto landing = [&](uint32_t return_offset) -> int {
    const void* found = version.landing_of(version.begin() + return_offset);
    return found == nullptr ? -1 : static_cast<int>(static_cast<const std::byte*>(found) - version.begin());
  };
  EXPECT_EQ(landing(20), 100);
  EXPECT_EQ(landing(41), 200);
  EXPECT_EQ(landing(60), 200);
  for (const uint32_t other : {1u, 19u, 21u, 40u, 61u, 256u}) EXPECT_EQ(landing(other), -1) << other;
}

}  // namespace
}  // namespace hindsight::jit
