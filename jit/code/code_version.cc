#include "jit/code/code_version.h"

namespace hindsight::jit {

const char* to_string(Tier tier) {
  switch (tier) {
    case Tier::kBaseline:
      return "baseline";
    case Tier::kOptimized:
      return "optimized";
  }
  return "unknown tier";
}

}  // namespace hindsight::jit
