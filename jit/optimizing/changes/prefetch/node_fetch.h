// What a walk reads of a node besides what it reads at once. A search in a B-tree waits twice at a node of several lines: for the
// keys, and then, as the branch that found the right one was mispredicted, for the child's address some lines further. Where all of
// them are is known as soon as the node is:
//
//   loop:
//     node = phi [first, ...], [next, ...]
//     for (i = 0; i < node[0] && key > node[8 + 8 * i]; ++i) ...
//     next = load node[504 + 4 * i]
//     prefetch next[72], next[136], next[200], next[504], next[568]
//
// So nothing is run ahead here, and there is no distance. After S. Chen, P. Gibbons and T. Mowry, "Improving Index Performance
// through Prefetching", SIGMOD 2001, whose trees fetch a node's lines all at once. Which lines there are is read from the constants
// in the addresses: an array goes on to the next field that is known.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

struct NodeFetch {
  llvm::Loop* loop = nullptr;               // of the walk
  std::vector<llvm::LoadInst*> links = {};  // bring the next node: an address in linear memory
  std::vector<int64_t> places = {};         // bytes from the node. Empty: they are fetched for other accesses
};

// The walks of a function with one memory: loops in which a load's address comes from what the same load brought in the iteration before.
class NodeWalks {
 public:
  struct Place {  // of an access, from a walk's node
    size_t walk = 0;
    int64_t offset = 0;
    bool is_element = false;  // or further, by what is not constant
    bool is_carried = false;  // from the node that the loop carries, not from the next one
  };

  NodeWalks(const IrModule& ir, const llvm::LoopInfo& loops);
  // Where a load or store is in a walk's node, or in the one that a walk ends with; empty: in none.
  std::optional<Place> place_of(const llvm::Instruction& access) const;
  llvm::Loop& loop_of(const Place& place) const { return *walks_[place.walk].loop; }
  bool is_repeated(const Place& place) const { return walks_[place.walk].is_repeated; }
  // Whether it is known as soon as the node is that something is read there.
  bool is_at_once(const Place& place) const;
  // What to fetch for a load or store at its place. Empty: it is read at once. Places that were given for one access are not given for
  // another.
  std::optional<NodeFetch> fetch_for(const llvm::Instruction& access, const Place& place);

 private:
  struct Walk {
    llvm::Loop* loop = nullptr;
    std::vector<llvm::LoadInst*> links = {};
    bool is_repeated = false;        // a loop around it begins it anew
    std::set<int64_t> fields = {};   // that something is read or written at
    std::set<int64_t> at_once = {};  // of these, in each iteration
    std::set<int64_t> fetched = {};
  };

  void find_walks(llvm::Loop& loop);
  bool is_repeated(const Walk& walk) const;
  void find_fields(const llvm::Loop& outermost);

  const IrModule& ir_;
  const llvm::LoopInfo& loops_;
  std::vector<Walk> walks_;
  std::map<const llvm::Value*, size_t> links_;  // by link
  std::set<const llvm::Loop*> walked_;
};

}  // namespace hindsight::jit::optimizing
