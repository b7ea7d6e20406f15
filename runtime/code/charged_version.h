// A version of code whose bytes count against limits (runtime/instance/code_tally.h) as long as somebody has it. Whoever
// frees it then frees its charge. The compilers and the room of code know of no limits.
#pragma once

#include <memory>
#include <utility>

#include "jit/code/code_version.h"
#include "runtime/instance/code_tally.h"

namespace hindsight::rt {

struct ChargedVersionDeleter {
  CodeTally::Charge charge;
  void operator()(const jit::CodeVersion* version) {
    delete version;
    charge.reset();
  }
};

// Not charged yet.
inline std::shared_ptr<jit::CodeVersion> chargeable(std::unique_ptr<jit::CodeVersion> version) {
  jit::CodeVersion* const made = version.release();  // which the pointer deletes, whatever happens
  return std::shared_ptr<jit::CodeVersion>(made, ChargedVersionDeleter{});
}
// Once, of what chargeable() has made.
inline void charge_version(const std::shared_ptr<jit::CodeVersion>& version, CodeTally::Charge charge) {
  std::get_deleter<ChargedVersionDeleter>(version)->charge = std::move(charge);
}

}  // namespace hindsight::rt
