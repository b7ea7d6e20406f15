// A version once more, somewhere else in the same arena. It has the same instructions with what in them depends on
// places written anew (relocation.h), the same tables and the same loop cells. What a trial found out, or is finding
// out, about a cell so holds for both, and a loop may be in either.
//
// Where a version's cold part lies after the rest (CodeVersion::hot_bytes), only the rest is copied. Where the copy
// goes on in the cold part, that is the version's own. What follows runs in the version until the function is left: the
// same instructions, for the same frame. So a version outlives its parts: RetireList frees it after them, in a later
// look at what threads hold.
#pragma once

#include <memory>

#include "base/result.h"
#include "jit/code/code_version.h"

namespace hindsight::jit {

// What a place for the version's copy has to hold; 0: it cannot be copied (baseline code, or a kind of
// relocation that nobody knows).
size_t bytes_to_move(const CodeVersion& version);

// The copy, without an id and not published. Reads only what no longer changes in a published version.
// Precondition: `place` holds bytes_to_move(version), which is not 0.
// Error kResource: out of reach of the rest.
Result<std::unique_ptr<CodeVersion>> copy_version(const std::shared_ptr<const CodeVersion>& version,
                                                  CodeAllocation place);

}  // namespace hindsight::jit
