#include "runtime/instance/store_budget.h"

#include "base/printable.h"
#include "jit/wasm/module.h"

namespace hindsight::rt {

std::unexpected<Error> StoreBudget::refusal(const std::string& what, uint64_t wanted, uint64_t held,
                                            const char* unit, uint64_t limit, const char* limit_name) {
  std::string message = what + " would take " + std::to_string(wanted) + " " + unit;
  if (held != 0) message += " besides the " + std::to_string(held) + " that the store has";
  return make_error(ErrorKind::kResource,
                    message + "; the limit " + limit_name + " allows " + std::to_string(limit));
}

Status StoreBudget::take_types(const std::shared_ptr<const wasm::Module>& module) {
  const std::lock_guard lock(mutex_);
  if (modules_.contains(module)) return {};
  const uint64_t more = module->types.size();
  if (types_ > limits_.types || more > limits_.types - types_)
    return refusal("module " + printable_name(module->name), more, types_, "types", limits_.types, "types");
  modules_.insert(module);
  types_ += more;
  return {};
}

}  // namespace hindsight::rt
