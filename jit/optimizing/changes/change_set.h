// ChangeSet: the changes that one compilation was asked for, what became of them, and who has which loop.
//
// A pass takes the slots of its kind and finds their places in the code. It claims the loop that the change would be a version of, and says
// what came of it. The loops' cells are made here, one for all copies of a wasm loop (OSR entries).
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/change.h"
#include "jit/code/code_version.h"
#include "jit/optimizing/ir/ir_module.h"
#include "jit/optimizing/versions/loop_groups.h"

namespace hindsight::jit::optimizing {

// One change asked for, and the answer to it.
struct Slot {
  Request request;
  Answer answer;

  WasmOffset at() const { return request.site.at; }
  ChangeKind kind() const { return request.site.kind; }
  uint32_t setting() const;  // where its trial begins: as asked for, within what the kind's knob allows
  // There are copies of a place (inlined bodies, OSR entries): one that has the change speaks for all.
  void refuse(std::string_view why);
  void wait(std::string_view why);
  void apply(const LoopClaim& claim, std::string why);
  // A copy of the loop that stands elsewhere may have been taken with another loop around it: a change belongs to one cell.
  bool is_elsewhere(const LoopClaim& claim) const;
};

class ChangeSet {
 public:
  explicit ChangeSet(IrModule& ir);

  // Those of a kind, one a place, by falling weight. They stay where they are as long as the set.
  std::span<Slot> of(ChangeKind kind);
  std::span<const Slot> of(ChangeKind kind) const;
  bool asks_for(ChangeKind kind) const { return !of(kind).empty(); }
  // Whether there is such a change, asked for or following another.
  bool is_known(Site site) const;

  // The one rule for who has a loop, by the claims of the kinds (jit/change.h). Loads that are asked about come before turns
  // that are usually so many. Refused: why the change waits.
  std::expected<LoopClaim, std::string> claim(const Slot& slot, const LoopPlace& place);

  // The index in `cells` of a claimed loop's cell, for changes of one kind, or for all that are in one of its two versions. Made at first
  // use, for `slot`.
  uint32_t cell_of(const LoopClaim& claim, Slot& slot);
  // A load that shares the change of another slot's loop.
  void follow(Slot& slot, const LoopClaim& claim, std::string_view why);
  void add_follower(Site site, const LoopClaim& claim, uint32_t cell, std::string_view why);
  // The place of the slot's address in its cell's upcoming[]; made at first use, empty if all are taken.
  std::optional<uint32_t> timed_slot(Slot& slot);

  // The answers of all slots, and of what follows them. LoopCell::site is an index into these.
  std::vector<Answer> answers() const;

  IrModule& ir;
  std::vector<std::shared_ptr<LoopCell>> cells;  // the code names them by cell_symbol (names.h)
  std::set<uint32_t> short_loops;                // wasm offsets of loops whose runs may be short
  bool has_regrouped_searches = false;  // there are loops by now that cannot be left where they could
  std::string fetches;                  // fetch_text.h

 private:
  std::vector<Slot> slots_;  // by kind
  std::vector<Answer> followers_;
  std::map<std::pair<ChangeKind, uint32_t>, uint32_t> cell_of_loop_;  // wasm offset of the loop -> its cell
};

// The loads of linear memory that a slot's place means: copies of one wasm load.
std::vector<llvm::LoadInst*> loads_of(const IrModule& ir, llvm::Function& function, WasmOffset offset);

}  // namespace hindsight::jit::optimizing
