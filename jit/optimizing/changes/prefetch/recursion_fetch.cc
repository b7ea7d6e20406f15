#include "jit/optimizing/changes/prefetch/recursion_fetch.h"

#include <llvm/IR/InstIterator.h>

#include <algorithm>
#include <cstdlib>

#include "jit/optimizing/changes/cache_line.h"
#include "jit/optimizing/changes/prefetch/access_bytes.h"
#include "jit/optimizing/changes/prefetch/address_terms.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

void follow_all(const llvm::PHINode& phi, FollowIncoming incoming) {
  for (const Value* value : phi.incoming_values()) incoming(*value, false, false);
}

// Does it go through an array?
bool is_stepped(const llvm::PHINode& phi) {
  return llvm::any_of(phi.incoming_values(), [&](const Value* value) {
    return llvm::any_of(origins_of(
                            *value, [&](const Value& other) { return &other == &phi; }, follow_all),
                        [](const Origin& origin) { return origin.offset != 0 || origin.is_element; });
  });
}

// What an array's address comes from.
bool may_be_base(const AddressTerms::Term& term) {
  return term.times == 1 && llvm::isa<llvm::Argument, llvm::LoadInst>(term.value);
}

// The same address, or read from the same place.
bool is_same_base(const Value* one, const Value* other) {
  if (one == other) return true;
  const auto* const load = llvm::dyn_cast_or_null<llvm::LoadInst>(one);
  const auto* const again = llvm::dyn_cast_or_null<llvm::LoadInst>(other);
  if (load == nullptr || again == nullptr) return false;
  const AddressTerms at = terms_of(*load->getPointerOperand()), then = terms_of(*again->getPointerOperand());
  return at.is_whole && then.is_whole && at.constant == then.constant &&
         std::ranges::is_permutation(at.terms, then.terms);
}

}  // namespace

// The arguments and loads that it comes from.
std::vector<Origin> RecursionNodes::pointers_of(const Value& address) const {
  return origins_of(
      address, [](const Value& value) { return llvm::isa<llvm::Argument, llvm::LoadInst>(value); },
      [&](const llvm::PHINode& phi, FollowIncoming incoming) {
        const auto [known, is_new] = stepped_.try_emplace(&phi, false);
        if (is_new) known->second = is_stepped(phi);
        for (const Value* value : phi.incoming_values()) incoming(*value, known->second, false);
      },
      Summands::kFew);
}

RecursionNodes::RecursionNodes(const IrModule& ir, const llvm::Function& function,
                               const llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution)
    : ir_(ir), loops_(loops), evolution_(evolution) {
  if (ir.wasm.memories.size() != 1) return;
  std::vector<const llvm::CallInst*> calls;
  std::vector<const llvm::PHINode*> phis;
  for (const Instruction& instruction : llvm::instructions(function)) {
    if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        call && call->getCalledFunction() == &function)
      calls.push_back(call);
    else if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction);
             phi && phi->getType()->isIntegerTy())
      phis.push_back(phi);
    else if (is_of_guest(ir, instruction))
      accesses_.push_back(&instruction);
  }
  if (calls.empty()) return;
  // A call at the end may have become a loop.
  std::map<const llvm::Argument*, std::vector<const Value*>> joined;
  for (const llvm::PHINode* phi : phis)
    for (const Origin& origin : pointers_of(*phi))
      if (const auto* argument = llvm::dyn_cast<llvm::Argument>(origin.value);
          argument && origin.offset == 0 && !origin.is_element)
        joined[argument].push_back(phi);
  for (const llvm::Argument& argument : function.args()) {
    if (!argument.getType()->isIntegerTy(32) && !argument.getType()->isIntegerTy(64)) continue;
    std::vector<const Value*> nexts = joined[&argument];
    for (const llvm::CallInst* call : calls) nexts.push_back(call->getArgOperand(argument.getArgNo()));
    add_node({.argument = &argument}, nexts);
    for (const Pool& pool : pools_of(argument)) add_node({.argument = &argument, .pool = pool}, nexts);
  }
  if (!nodes_.empty()) find_fields();
}

void RecursionNodes::add_node(Node node, const std::vector<const Value*>& nexts) {
  while (find_links(node, nexts)) {
  }
  if (!node.leads.empty() || !node.rows.empty()) nodes_.push_back(std::move(node));
}

// Of which arrays it is an index, by the accesses of elements.
std::vector<RecursionNodes::Pool> RecursionNodes::pools_of(const llvm::Argument& argument) const {
  std::vector<Pool> pools;
  for (const Instruction* access : accesses_) {
    const AddressTerms sum = terms_of(*llvm::getLoadStorePointerOperand(access));
    if (!sum.is_whole) continue;
    for (const AddressTerms::Term& term : sum.terms) {
      if (term.times < kLeastNodeBytes || term.times > kMostNodeBytes) continue;
      const bool is_its = llvm::any_of(pointers_of(*term.value),
                                       [&](const Origin& origin) { return origin.value == &argument; });
      if (!is_its) continue;
      const auto base = std::ranges::find_if(sum.terms, may_be_base);
      const Pool pool{.scale = term.times,
                      .base = base == sum.terms.end() ? nullptr : base->value,
                      .constant = sum.constant};
      const bool is_known = llvm::any_of(pools, [&](const Pool& other) {
        return other.scale == pool.scale && is_same_base(other.base, pool.base);
      });
      if (!is_known) pools.push_back(pool);
    }
  }
  return pools;
}

// Whether there are more than before: a field of a further node is known for one once that node is. `nexts`: what may be further nodes.
bool RecursionNodes::find_links(Node& node, const std::vector<const Value*>& nexts) const {
  bool has_more = false;
  for (const Value* value : nexts) {
    for (const Origin& next : pointers_of(*value)) {
      const auto* const load = llvm::dyn_cast<llvm::LoadInst>(next.value);
      if (load == nullptr || !is_of_guest(ir_, *load) || load->getType() != node.argument->getType())
        continue;
      const bool is_node = next.offset == 0 && !next.is_element;
      if (is_node && node.loaded.contains(load)) continue;
      const Places places = places_in(node, *load);
      if (places.at.empty()) {
        const auto row = is_node ? row_of(*load, loops_) : std::nullopt;
        if (!row) continue;
        node.rows.emplace(load, *row);
      } else if (places.is_element) {
        if (!is_node) continue;
        node.arrays.insert(places.at.begin(), places.at.end());
      } else {
        const auto further = next.is_element ? elements_behind(*load, *value) : std::vector{next.offset};
        for (const int64_t place : places.at)
          for (const int64_t number : further)
            if (const int64_t bytes = number * (node.pool ? node.pool->scale : 1);
                std::abs(bytes) <= kMostNodeBytes)
              has_more |= node.links.insert({place, bytes}).second;
        if (further.empty()) continue;
      }
      if (!places.at.empty()) node.leads.insert(load);
      if (!is_node) continue;
      node.loaded.insert(load);
      has_more = true;
    }
  }
  return has_more;
}

// What a loop adds to what was loaded: that is where the first of several nodes is.
std::vector<int64_t> RecursionNodes::elements_behind(const llvm::LoadInst& load, const Value& next) const {
  const AddressTerms sum = terms_of(next);
  if (!sum.is_whole || sum.terms.size() != 2) return {};
  const auto phi = std::ranges::find_if(
      sum.terms, [](const AddressTerms::Term& term) { return llvm::isa<llvm::PHINode>(term.value); });
  if (phi == sum.terms.end() ||
      std::ranges::find(sum.terms, AddressTerms::Term{.value = &load}) == sum.terms.end())
    return {};
  const auto& counter = llvm::cast<llvm::PHINode>(*phi->value);
  const llvm::Loop* const loop = loops_.getLoopFor(counter.getParent());
  if (loop == nullptr || loop->getHeader() != counter.getParent() || loop->getLoopPredecessor() == nullptr)
    return {};
  const int64_t step = step_of(counter, *loop);
  const auto* const first =
      llvm::dyn_cast<llvm::ConstantInt>(counter.getIncomingValueForBlock(loop->getLoopPredecessor()));
  // Numbers of any module: products of these do not overflow.
  if (step == 0 || first == nullptr || !llvm::isInt<32>(step) || !llvm::isInt<32>(first->getSExtValue()) ||
      std::abs(phi->times) > kMostNodeBytes)
    return {};
  const unsigned turns = evolution_.getSmallConstantTripCount(loop);
  const size_t count = turns == 0 ? kUnknownSideBySide : std::min<size_t>(turns, kMostFurtherNodes);
  std::vector<int64_t> further;
  for (size_t i = 0; i < count; ++i)
    further.push_back(sum.constant + (first->getSExtValue() + static_cast<int64_t>(i) * step) * phi->times);
  return further;
}

RecursionNodes::Places RecursionNodes::places_in(const Node& node, const Instruction& access) const {
  const Value& address = *llvm::getLoadStorePointerOperand(&access);
  if (node.pool) return places_in_pool(node, address);
  Places places;
  for (const Origin& origin : pointers_of(address)) {
    if (origin.value != node.argument && !node.loaded.contains(origin.value)) continue;
    if (std::abs(origin.offset) > kMostNodeBytes) return {};
    places.at.insert(origin.offset);
    places.is_element |= origin.is_element;
  }
  return places;
}

// Arrays that lie where the program was linked to are one pool if their elements have one size: there, fields lie far apart.
RecursionNodes::Places RecursionNodes::places_in_pool(const Node& node, const Value& address) const {
  const AddressTerms sum = terms_of(address);
  if (!sum.is_whole) return {};
  Places places;
  std::set<int64_t> at_nodes;  // of the index
  std::set<int64_t> further{sum.constant - node.pool->constant};
  const Value* base = nullptr;
  for (const AddressTerms::Term& term : sum.terms) {
    if (term.times == node.pool->scale && places.index == nullptr) {
      for (const Origin& origin : pointers_of(*term.value)) {
        if (origin.value != node.argument && !node.loaded.contains(origin.value)) continue;
        at_nodes.insert(origin.offset * node.pool->scale);
        places.is_element |= origin.is_element;
      }
      if (!at_nodes.empty()) {
        places.index = term.value;
        continue;
      }
    }
    const std::vector<int64_t> few = numbers_of(*term.value);
    if (!few.empty()) {
      std::set<int64_t> all;
      for (const int64_t bytes : further)
        for (const int64_t number : few) all.insert(bytes + number * term.times);
      further = std::move(all);
    } else if (base == nullptr && may_be_base(term)) {
      base = term.value;
    } else {
      places.is_element = true;
    }
  }
  if (!is_same_base(base, node.pool->base)) return {};
  for (const int64_t node_bytes : at_nodes) {
    for (const int64_t bytes : further) {
      if (base != nullptr && std::abs(node_bytes + bytes) > kMostNodeBytes) return {};
      places.at.insert(node_bytes + bytes);
    }
  }
  return places;
}

void RecursionNodes::find_fields() {
  for (const Instruction* access : accesses_) {
    for (Node& node : nodes_) {
      const Places places = places_in(node, *access);
      node.fields.insert(places.at.begin(), places.at.end());
      if (!places.at.empty()) node.end = std::max(node.end, *places.at.rbegin() + bytes_of(*access));
    }
  }
}

std::vector<RecursionLink> RecursionNodes::links_of(const Node& node) const {
  std::set<RecursionLink> links = node.links;
  const int64_t bytes = node.argument->getType()->getIntegerBitWidth() / 8;
  for (const int64_t begin : node.arrays) {
    const auto next = node.fields.upper_bound(begin);
    const int64_t most = begin + static_cast<int64_t>(kMostFurtherNodes) * bytes;
    const int64_t end = next == node.fields.end() ? most : std::min(*next, most);
    for (int64_t at = begin; at < end; at += bytes) links.insert({.place = at});
  }
  std::vector<RecursionLink> all(links.begin(), links.end());
  if (all.size() > kMostFurtherNodes) all.resize(kMostFurtherNodes);
  return all;
}

std::vector<RecursionRow> RecursionNodes::rows_of(const Node& node) const {
  std::vector<RecursionRow> rows;
  for (const auto& [load, row] : node.rows) {
    rows.push_back(row);
    if (row.begin == nullptr) continue;
    const Places begin = places_in(node, *row.begin);
    if (begin.at.size() == 1 && !begin.is_element) rows.back().begin_place = *begin.at.begin();
  }
  return rows;
}

std::optional<RecursionFetch> RecursionNodes::fetch_for(const Instruction& access) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const Places places = places_in(node, access);
    const bool is_in_row = node.rows.contains(&access) && !node.pool;
    if (!is_in_row && (places.at.size() != 1 || places.is_element)) continue;
    RecursionFetch fetch{.node = i, .address = node.argument->getType(), .rows = rows_of(node)};
    if (!node.fields.empty()) {
      const int64_t begin = *node.fields.begin(), last = node.end - 1;
      fetch.place = is_in_row ? begin : *places.at.begin();
      // All of it may lie in two lines.
      if (last - begin < kNearInANodeBytes || last - begin >= kLineBytes)
        fetch.fetched = {fetch.place};
      else
        fetch.fetched = {begin, last};
    }
    if (is_in_row) return fetch;
    fetch.scale = node.pool ? node.pool->scale : 0;
    fetch.index = const_cast<Value*>(places.index);
    fetch.links = links_of(node);
    fetch.loads = {node.leads.begin(), node.leads.end()};
    return fetch;
  }
  return std::nullopt;
}

}  // namespace hindsight::jit::optimizing
