#include "runtime/storage/missing_key.h"

#include "runtime/storage/user_key.h"

namespace hindsight::rt {

bool says_that_no_key_is_there(const CodeServices& services, const Error& error) {
  if (error.place != services.key->path()) return false;
  if (services.key->first_complaint()) {
    services.say(LogLevel::kWarning, "cache",
                 error.describe() + "; no code and no profiles are kept, and none are used");
  }
  return true;
}

}  // namespace hindsight::rt
