// Do the samples of a function's code stand where they stood when the code was new? Where a program spends its time is
// the cheapest thing that is known of what it does. Behaviour that changes shows there without any code that looks.
//
// Compares the distribution of the first samples over places in the code, once they have settled, with that of the last
// ones. The measure is the share that would have to move to make one the other (their total variation distance). What
// two samples of one distribution differ by on average is taken off. After Sherwood, Sair and Calder, "Phase tracking
// and prediction", ISCA 2003. Sampled places stand for counted basic blocks, and there is one phase: the one that the
// code was made for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace hindsight::feedback {

class SampleShift {
 public:
  static constexpr size_t kSettling = 16;    // samples that say nothing yet
  static constexpr size_t kReference = 160;  // the first ones
  static constexpr size_t kRecent = 96;      // the last ones

  void add(uint32_t place);
  // 0 until there are enough of both; may be a little below 0 by chance.
  double share() const;

 private:
  size_t settled_ = 0, references_ = 0, recents_ = 0;
  struct Counts {
    uint32_t reference = 0, recent = 0;
  };
  std::map<uint32_t, Counts> places_;
  std::array<uint32_t, kRecent> last_{};  // a ring
};

}  // namespace hindsight::feedback
