// The one line about a key that cannot be had, for everything that is sealed with it.
#pragma once

#include "base/result.h"
#include "runtime/code/code_services.h"

namespace hindsight::rt {

// Whether this is why the key of `services` cannot be had; said once then, for code and profiles. Any thread.
bool says_that_no_key_is_there(const CodeServices& services, const Error& error);

}  // namespace hindsight::rt
