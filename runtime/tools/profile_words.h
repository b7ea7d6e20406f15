// Evidence in words, each count with its denominator: what explaining, showing and comparing profiles share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "feedback/profile/profile_file.h"
#include "jit/wasm/module.h"

namespace hindsight::rt {

// "12 of 80 (15 %)".
std::string share_text(double part, double whole);

// With what became of changes there.
std::string load_text(const feedback::LoadEvidence& load, const feedback::FunctionEvidence& evidence);
std::string branch_text(const feedback::BranchEvidence& branch, const feedback::ChangeLedger& changes);
// `module`: names the targets; may be null.
std::string call_text(const feedback::CallEvidence& call, const wasm::Module* module);
// The places of these loops of the function, separated by commas.
std::string loops_text(const feedback::FunctionEvidence& e, const std::vector<LoopIndex>& loops);
// By which loops its code is entered and left; loads, branches and calls, at most `most` of each; each line preceded by
// `indent`.
std::string evidence_text(const feedback::FunctionEvidence& evidence, const wasm::Module* module,
                          const std::string& indent, size_t most);

// "kept, +12.0 % at distance 16 (why)".
std::string outcome_text(jit::Site site, const feedback::Outcome& outcome);
// "prefetch for the load at 0x12".
std::string change_text(jit::Site site);
// "prefetches for the loads at 0x12, 0x34": what was asked for of one kind. Empty: nothing.
std::string changes_text(jit::ChangeKind kind, const std::vector<WasmOffset>& sites);
// "in the last run", "3 runs ago".
std::string age_text(uint32_t runs_ago);
// "func[12] name".
std::string function_text(FuncIndex function, const std::string& name);

}  // namespace hindsight::rt
