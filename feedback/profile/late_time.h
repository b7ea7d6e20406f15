// Late time: what the loops of a program ran in baseline code after they were hot. It says how long code comes too late.
// The reason may be any: evidence that is waited for, a queue, the compile, code that running loops do not get into.
//
// Time is counted by place. A place is the outermost loop whose compile is expected to be short, with all that is in it. A
// loop that is too large for that is one without what is in places of its own. What is in no loop is a place too, the
// function's own. The module says which places there are, so no decision moves them.
//
// A place is hot from the sample on with which its CPU time in baseline code of late makes its compile pay (HotRule). From
// then on all that it runs in baseline code is late. Nothing is waited for in this rule: it says what would be best.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "jit/wasm/module.h"

namespace hindsight::feedback {

// What a place in baseline code waits for.
enum class PlaceState : uint8_t {
  kWaiting,    // to be asked for: evidence, or a decision
  kQueued,     // its compile has not begun
  kCompiling,  // asked for; whether it has begun may not be known
  kPublished,  // to enter code that is there
  kRefused,    // nothing: it stays as it is
  kObserved,   // back from optimized code, to be seen anew
};
inline constexpr size_t kPlaceStates = 6;
const char* to_string(PlaceState state);

// When a place is hot: seconds > factor * expected. A factor of 0: nothing ever is, and nothing is counted.
struct HotRule {
  double factor = 0;
  double fixed_seconds = 0, seconds_per_byte = 0, seconds_per_loop = 0;  // of a compile
  double most_seconds = 0;  // of the compile of a loop that has others in it and is one place
  double expected(uint32_t bytes, uint32_t loops) const {
    return fixed_seconds + seconds_per_byte * bytes + seconds_per_loop * loops;
  }
};

struct LatePlace {
  std::string function;
  WasmOffset offset;  // of the loop; outside of loops, of the function's first instruction
  bool in_loop = false;
  std::array<double, kPlaceStates> seconds = {};  // by PlaceState
  std::string why;                                // the last that was said of it; may be empty
  double sum() const;
};

// What ran late in one module, or in several.
struct LateSummary {
  static constexpr size_t kMost = 16;
  double seconds = 0;
  uint64_t places = 0;           // with late time
  std::vector<LatePlace> worst;  // by descending time, at most kMost
  void add(const LateSummary& other);
};

// Counts for one module. Not thread-safe by itself.
class LateTime {
 public:
  struct Place {
    double seconds_baseline = 0;  // of late
    bool hot = false;
    std::array<double, kPlaceStates> late = {};
    std::optional<PlaceState> state;  // as was said
    std::string why;
  };
  explicit LateTime(HotRule rule) : rule_(rule) {}
  bool counts() const { return rule_.factor > 0; }

  // A sample in baseline code; `loop`: the innermost one, if any. The place, if the sample is late.
  Place* add_sample(const wasm::Module& module, FuncIndex function, std::optional<LoopIndex> loop,
                    double seconds);
  // What the places in the loop, or the one it is in, wait for from now on; without a loop, all of the function.
  void note(const wasm::Module& module, FuncIndex function, std::optional<LoopIndex> loop, PlaceState state,
            std::string why);
  void decay(double factor);
  LateSummary summary(const wasm::Module& module) const;

 private:
  static constexpr uint32_t kOwn = ~0u;  // the function's own place
  struct Function {
    std::vector<uint32_t> place_of_loop;  // the loop that is its place
    std::vector<uint32_t> loops_in;       // itself included
    std::map<uint32_t, Place> places;     // by their loop, or kOwn
  };
  Function& of(const wasm::Module& module, FuncIndex function);
  bool pays(const wasm::FunctionBody& body, const Function& function, uint32_t place, double seconds) const;

  HotRule rule_;
  std::map<uint32_t, Function> functions_;
};

}  // namespace hindsight::feedback
