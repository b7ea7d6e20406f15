// Tests about paths run on both ways of resolving them.
#pragma once

#include <string>

#include "tests/runtime/wasi/guest.h"

namespace hindsight::wasi {

class OnBothResolvers : public testing::TestWithParam<PathResolver::Strategy> {
 protected:
  void SetUp() override {
    if (GetParam() == PathResolver::Strategy::kOpenat2 &&
        PathResolver::best() != PathResolver::Strategy::kOpenat2)
      GTEST_SKIP() << "this kernel or its seccomp filter does not offer openat2";
  }
  Config with_strategy(Config config) const {
    config.path_strategy = GetParam();
    return config;
  }
};

inline std::string strategy_name(const testing::TestParamInfo<PathResolver::Strategy>& info) {
  return info.param == PathResolver::Strategy::kOpenat2 ? "openat2" : "walk";
}

inline const auto kBothResolvers =
    testing::Values(PathResolver::Strategy::kOpenat2, PathResolver::Strategy::kWalk);

}  // namespace hindsight::wasi
