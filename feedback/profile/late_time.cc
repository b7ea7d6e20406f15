#include "feedback/profile/late_time.h"

#include <algorithm>
#include <numeric>

namespace hindsight::feedback {

const char* to_string(PlaceState state) {
  switch (state) {
    case PlaceState::kWaiting:
      return "waiting";
    case PlaceState::kQueued:
      return "queued";
    case PlaceState::kCompiling:
      return "compiling";
    case PlaceState::kPublished:
      return "entering";
    case PlaceState::kRefused:
      return "refused";
    case PlaceState::kObserved:
      return "observed";
  }
  return "unknown";
}

double LatePlace::sum() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

void LateSummary::add(const LateSummary& other) {
  seconds += other.seconds;
  places += other.places;
  worst.insert(worst.end(), other.worst.begin(), other.worst.end());
  std::stable_sort(worst.begin(), worst.end(),
                   [](const LatePlace& a, const LatePlace& b) { return a.sum() > b.sum(); });
  if (worst.size() > kMost) worst.resize(kMost);
}

namespace {

uint32_t bytes_of(const wasm::LoopInfo& loop) {
  return loop.end.value - loop.offset.value;
}

}  // namespace

LateTime::Function& LateTime::of(const wasm::Module& module, FuncIndex index) {
  const auto [found, fresh] = functions_.try_emplace(index.value);
  Function& function = found->second;
  const std::vector<wasm::LoopInfo>& loops = module.body(index).loops;
  if (!fresh || loops.empty()) return function;
  function.loops_in.assign(loops.size(), 1);
  for (size_t i = loops.size(); i-- > 0;)
    if (loops[i].parent) function.loops_in[loops[i].parent->value] += function.loops_in[i];
  // Parents stand before their children, and take no less to compile.
  for (uint32_t i = 0; i < loops.size(); ++i) {
    const bool in_parents =
        loops[i].parent && rule_.expected(bytes_of(loops[loops[i].parent->value]),
                                          function.loops_in[loops[i].parent->value]) <= rule_.most_seconds;
    function.place_of_loop.push_back(in_parents ? function.place_of_loop[loops[i].parent->value] : i);
  }
  return function;
}

bool LateTime::pays(const wasm::FunctionBody& body, const Function& function, uint32_t place,
                    double seconds) const {
  const double expected =
      place == kOwn
          ? rule_.expected(body.end.value - body.begin.value, static_cast<uint32_t>(body.loops.size()))
          : rule_.expected(bytes_of(body.loops[place]), function.loops_in[place]);
  return seconds > rule_.factor * expected;
}

LateTime::Place* LateTime::add_sample(const wasm::Module& module, FuncIndex index,
                                      std::optional<LoopIndex> loop, double seconds) {
  Function& function = of(module, index);
  const uint32_t key = loop ? function.place_of_loop[loop->value] : kOwn;
  Place& place = function.places[key];
  place.seconds_baseline += seconds;
  if (place.hot) return &place;
  place.hot = pays(module.body(index), function, key, place.seconds_baseline);
  return nullptr;
}

void LateTime::note(const wasm::Module& module, FuncIndex index, std::optional<LoopIndex> loop,
                    PlaceState state, std::string why) {
  if (!counts()) return;
  Function& function = of(module, index);
  const std::vector<wasm::LoopInfo>& loops = module.body(index).loops;
  function.places.try_emplace(loop ? function.place_of_loop[loop->value] : kOwn);
  for (auto& [key, place] : function.places) {
    const bool meant = !loop || key == function.place_of_loop[loop->value] ||
                       (key != kOwn && key > loop->value && loops[key].offset < loops[loop->value].end);
    if (!meant) continue;
    place.state = state;
    place.why = why;
  }
}

void LateTime::decay(double factor) {
  for (auto& [index, function] : functions_)
    for (auto& [key, place] : function.places) place.seconds_baseline *= factor;
}

LateSummary LateTime::summary(const wasm::Module& module) const {
  LateSummary all;
  for (const auto& [index, function] : functions_) {
    const wasm::FunctionBody& body = module.body(FuncIndex(index));
    LateSummary of_function;
    for (const auto& [key, place] : function.places) {
      const double seconds = std::accumulate(place.late.begin(), place.late.end(), 0.0);
      if (seconds <= 0) continue;
      of_function.seconds += seconds;
      of_function.places += 1;
      of_function.worst.push_back({.function = module.function_name(FuncIndex(index)),
                                   .offset = key == kOwn ? body.begin : body.loops[key].offset,
                                   .in_loop = key != kOwn,
                                   .seconds = place.late,
                                   .why = place.why});
    }
    if (of_function.places != 0) all.add(of_function);
  }
  return all;
}

}  // namespace hindsight::feedback
