// A decision about pages through a profile's text and back.
#pragma once

#include <gtest/gtest.h>

#include "feedback/policy/pages.h"

namespace hindsight::feedback {

// It comes back as it was, and the policy decides the same on it.
inline void expect_replays_once_saved(const PageEpisode& episode, const PolicyConfig& config) {
  ProfileFile file;
  file.policy = to_parameters(config);
  file.modules.resize(1);
  file.modules[0].page_episodes = {episode};
  const auto back = read_profile(format_profile(file));
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->modules[0].page_episodes.size(), 1u);
  EXPECT_EQ(back->modules[0].page_episodes[0], episode);
  EXPECT_TRUE(replays(back->modules[0].page_episodes[0], from_parameters(back->policy)));
}

}  // namespace hindsight::feedback
