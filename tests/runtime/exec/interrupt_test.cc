#include "runtime/exec/interrupt.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using namespace std::chrono_literals;

TEST(TheTimersList, HasAnEntryWithALimitUntilItsStoreGoes) {
  const auto engine = make_engine();
  const size_t before = rt::watched_entries();
  for (int i = 0; i < 3; i++) {
    auto linker = std::make_unique<Linker>(*engine);
    auto guest = instantiate(*linker, *engine, R"((module (func (export "fine"))))");
    ASSERT_NE(guest, nullptr);
    guest->set_timeout(1h);
    for (int call = 0; call < 3; call++) EXPECT_TRUE(guest->call("fine", {}));
    EXPECT_EQ(rt::watched_entries(), before + 1);
    guest.reset();
    linker.reset();
    EXPECT_EQ(rt::watched_entries(), before);
  }
}

}  // namespace
}  // namespace hindsight
