// What an engine says in its log, for tests that read it. Give sink() to the engine and keep the lines for as long as
// it lives. Any thread.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"

namespace hindsight {

class LogLines {
 public:
  // The lines of this topic, without naming it; or, without one, all lines as "topic: text". `hold`: whoever says the
  // first one waits until let_go().
  explicit LogLines(std::string topic = {}, bool hold = false) : topic_(std::move(topic)), held_(hold) {}

  LogSink sink() {
    return [this](LogLevel level, std::string_view topic, std::string_view text) {
      if (!topic_.empty() && topic != topic_) return;
      std::unique_lock lock(mutex_);
      lines_.push_back(
          {level, topic_.empty() ? std::string(topic) + ": " + std::string(text) : std::string(text)});
      let_go_.wait(lock, [this] { return !held_; });
    };
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    let_go_.notify_all();
  }

  std::vector<std::string> lines() const {
    return those([](const Line&) { return true; });
  }
  // Those that begin so.
  std::vector<std::string> warnings(std::string_view start = {}) const {
    return those(
        [&](const Line& line) { return line.level == LogLevel::kWarning && line.text.starts_with(start); });
  }
  size_t count(std::string_view part) const {
    return those([&](const Line& line) { return line.text.find(part) != std::string::npos; }).size();
  }
  std::string text() const {
    std::string all;
    for (const std::string& line : lines()) all += line + "\n";
    return all;
  }

 private:
  struct Line {
    LogLevel level;
    std::string text;
  };
  template <typename Which>
  std::vector<std::string> those(Which which) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const Line& line : lines_)
      if (which(line)) found.push_back(line.text);
    return found;
  }

  const std::string topic_;
  mutable std::mutex mutex_;  // protects what follows
  std::condition_variable let_go_;
  bool held_;
  std::vector<Line> lines_;
};

}  // namespace hindsight
