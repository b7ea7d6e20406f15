// Provenance: where a number that steers something comes from. Such numbers stand in tables beside the code that uses
// them; docs/PARAMETERS.md is printed from these tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hindsight {

enum class Unit : uint8_t {
  kSamples,
  kRecords,
  kExecutions,
  kShare,
  kFactor,
  kCount,
  kSeconds,
  kSecondsAByte,
  kBytes,
  kHertz,
  kTicks,
};

// What a number of a unit is called, and between what it stays wherever it is read.
struct UnitTraits {
  Unit unit;
  std::string_view name;
  double least, most;
};
inline constexpr std::array kUnits = {
    UnitTraits{Unit::kSamples, "samples", 0, 1e6},
    UnitTraits{Unit::kRecords, "records", 0, 1e6},
    UnitTraits{Unit::kExecutions, "executions", 0, 1e9},
    UnitTraits{Unit::kShare, "share", 0, 1},
    UnitTraits{Unit::kFactor, "factor", 1, 1000},
    UnitTraits{Unit::kCount, "count", 0, 1e6},
    UnitTraits{Unit::kSeconds, "s", 0, 3600},
    UnitTraits{Unit::kSecondsAByte, "s a byte", 0, 1},
    UnitTraits{Unit::kBytes, "bytes", 0, 0x1p47},
    UnitTraits{Unit::kHertz, "Hz", 1, 1e5},
    UnitTraits{Unit::kTicks, "ticks", 0, 1e12},
};
constexpr const UnitTraits& traits_of(Unit unit) {
  return kUnits[static_cast<size_t>(unit)];
}
consteval bool units_are_in_order() {
  for (size_t i = 0; i < kUnits.size(); ++i) {
    if (static_cast<size_t>(kUnits[i].unit) != i) return false;
  }
  return true;
}
static_assert(units_are_in_order());

// The nearest number that may be one of that unit; the least for what is none.
constexpr double bounded(Unit unit, double number) {
  const UnitTraits& traits = traits_of(unit);
  if (!(number >= traits.least)) return traits.least;
  return number > traits.most ? traits.most : number;
}

struct Provenance {
  enum class Origin : uint8_t {
    kMeasured,  // on a machine, by an experiment that is named
    kDerived,   // follows from another number or from a document
    kSwept,     // chosen: no experiment says this one, and decisions hang on it
    kBound,     // a guard: other numbers of the same size would do
  };
  Unit unit;
  Origin origin;
  std::string_view why;
};
constexpr std::string_view to_string(Provenance::Origin origin) {
  constexpr std::string_view kNames[] = {"measured", "derived", "swept", "bound"};
  return kNames[static_cast<size_t>(origin)];
}

// A number that nothing but its code changes.
struct Constant {
  std::string_view name;
  double value;
  Provenance from;
};

}  // namespace hindsight
