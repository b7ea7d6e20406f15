// What a function reads of nodes that it calls itself with: the nodes of a tree, as people go down it. All that is known of where
// it goes next stands in the node that it is at, so all further nodes are fetched as soon as that one is there:
//
//   visit(node):
//     key = load node[8]                     // stalls
//     for each child in (node[0], node[4]):
//       prefetch child[8]
//     ...
//     visit(node[0])                         // meanwhile node[4]'s comes
//     visit(node[4])
//
// Nodes may also be elements of an array, and what leads from one to the next an index: then node[i] is array[node].field. And what a node
// leads to may stand in a row elsewhere, which a loop goes through: the next few of the row are fetched with each, and of the
// next one where its own row begins.
//
// So nothing is computed ahead, and there is no distance. After C.-K. Luk and T. Mowry, "Compiler-Based Prefetching for Recursive Data
// Structures", ASPLOS 1996: greedy prefetching. Which fields lead to further nodes is read from what the function calls itself with;
// siblings in a list are such as well.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ValueHandle.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "jit/optimizing/changes/prefetch/address_origins.h"
#include "jit/optimizing/changes/prefetch/recursion_row.h"
#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

// Where in a node the address or index of another one is, or of the first of several that lie side by side.
struct RecursionLink {
  int64_t place = 0;
  int64_t further = 0;  // bytes from there to the node that is meant
  auto operator<=>(const RecursionLink&) const = default;
};

struct RecursionFetch {
  size_t node = 0;                // which of the function's: an argument
  int64_t place = 0;              // of the access, bytes from the node
  llvm::Type* address = nullptr;  // of a node, or its index
  // An index: how many bytes from one node to that which comes behind it, and what the access has.
  int64_t scale = 0;  // 0: it is an address
  llvm::WeakTrackingVH index = {};
  // In their order; and which loads of the program read them.
  std::vector<RecursionLink> links = {};
  std::vector<const llvm::Instruction*> loads = {};
  std::vector<RecursionRow> rows = {};
  // What is fetched of those: both ends, or the access alone where all of a node is near it or in several lines.
  std::vector<int64_t> fetched = {};
};

// The nodes of a function with one memory.
class RecursionNodes {
 public:
  RecursionNodes(const IrModule& ir, const llvm::Function& function, const llvm::LoopInfo& loops,
                 llvm::ScalarEvolution& evolution);
  // Empty: it is neither in a node nor in a row of nodes, of those that the function calls itself with.
  std::optional<RecursionFetch> fetch_for(const llvm::Instruction& access) const;

 private:
  // What nodes are elements of, where their indices are known: constant + base + index * scale.
  struct Pool {
    int64_t scale = 0;
    const llvm::Value* base = nullptr;  // an argument or a load; null: there is none
    int64_t constant = 0;               // of a field's address
  };
  struct Node {
    const llvm::Argument* argument = nullptr;
    std::optional<Pool> pool = {};                         // empty: the argument is an address
    std::set<const llvm::Value*> loaded = {};              // further nodes, by loads
    std::map<const llvm::Value*, RecursionRow> rows = {};  // by their loads
    std::set<const llvm::Instruction*> leads = {};         // loads of links
    std::set<RecursionLink> links = {};
    std::set<int64_t> arrays = {};  // where one of links begins
    std::set<int64_t> fields = {};  // what is read or written of it
    int64_t end = 0;                // of the last one
  };
  // Where an access may be in a node. Empty: elsewhere, or anywhere.
  struct Places {
    std::set<int64_t> at = {};
    bool is_element = false;             // of arrays that begin there
    const llvm::Value* index = nullptr;  // the node's, if it has one
  };

  std::vector<Origin> pointers_of(const llvm::Value& address) const;
  std::vector<Pool> pools_of(const llvm::Argument& argument) const;
  void add_node(Node node, const std::vector<const llvm::Value*>& nexts);
  bool find_links(Node& node, const std::vector<const llvm::Value*>& nexts) const;
  void find_fields();
  std::vector<int64_t> elements_behind(const llvm::LoadInst& load, const llvm::Value& next) const;
  std::vector<RecursionLink> links_of(const Node& node) const;
  std::vector<RecursionRow> rows_of(const Node& node) const;
  Places places_in(const Node& node, const llvm::Instruction& access) const;
  Places places_in_pool(const Node& node, const llvm::Value& address) const;

  const IrModule& ir_;
  const llvm::LoopInfo& loops_;
  llvm::ScalarEvolution& evolution_;
  std::vector<const llvm::Instruction*> accesses_;  // of the program's
  std::vector<Node> nodes_;
  mutable std::map<const llvm::PHINode*, bool> stepped_ = {};  // what is known of them
};

}  // namespace hindsight::jit::optimizing
