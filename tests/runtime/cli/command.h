// For tests of the built command as people use it: words in, output and exit status out.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/cli/scratch_folder.h"

extern char** environ;

class Command : public ScratchFolder {
 protected:
  // A run must not depend on the runs before it; tests of the cache name a folder.
  Command() {
    ::setenv("HINDSIGHT_CODE_CACHE", "off", 1);
    ::setenv("HINDSIGHT_PROFILE_DIR", "off", 1);
  }
  void SetUp() override {
    ScratchFolder::SetUp();
    ::setenv("HINDSIGHT_KEY_DIR", path(".key").c_str(), 1);  // not into the home of whoever runs the tests
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Outcome hindsight(std::vector<std::string> words) const {
    words.insert(words.begin(), HINDSIGHT_COMMAND);
    return program(std::move(words));
  }
  // Any program, by its path.
  Outcome program(std::vector<std::string> words) const {
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, path(".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, path(".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = -1;
    const int failed = ::posix_spawn(&child, words[0].c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return {};
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), contents(path(".out")),
            contents(path(".err"))};
  }
};
