// A saved profile's words made safe to show (base/printable.h): those of its modules, and, as the file may be anybody's,
// its own.
#pragma once

#include "feedback/profile/profile_file.h"

namespace hindsight::rt {

// All strings of the profile. For texts about it: what is written or run with keeps the names as they are.
void make_printable(feedback::ProfileFile& file);

}  // namespace hindsight::rt
