#include "jit/optimizing/changes/prefetch/node_fetch.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "jit/optimizing/changes/cache_line.h"
#include "jit/optimizing/changes/prefetch/access_bytes.h"
#include "jit/optimizing/changes/prefetch/address_origins.h"
#include "jit/optimizing/changes/prefetch/prefetch_parameters.h"

namespace hindsight::jit::optimizing {
namespace {

using llvm::Instruction;
using llvm::Value;

bool is_near(const std::set<int64_t>& places, int64_t place) {
  const auto at = places.lower_bound(place - kNearInANodeBytes + 1);
  return at != places.end() && *at < place + kNearInANodeBytes;
}

// Goes back from an address through sums, and phis: those of walks, and what others begin with. Ends where `is_link` says so.
std::vector<Origin> trace(const Value* address, const llvm::LoopInfo& loops,
                          const std::set<const llvm::Loop*>& walked,
                          llvm::function_ref<bool(const Value&)> is_link) {
  return origins_of(*address, is_link, [&](const llvm::PHINode& phi, FollowIncoming incoming) {
    const llvm::Loop* const its = loops.getLoopFor(phi.getParent());
    const bool is_header = its != nullptr && its->getHeader() == phi.getParent();
    const bool is_walk = is_header && walked.contains(its);
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
      if (!is_header || is_walk || !its->contains(phi.getIncomingBlock(i)))
        incoming(*phi.getIncomingValue(i), is_header && !is_walk, is_walk);
  });
}

}  // namespace

NodeWalks::NodeWalks(const IrModule& ir, const llvm::LoopInfo& loops) : ir_(ir), loops_(loops) {
  // Of an address that comes from one memory nobody knows whether it leads into that one.
  if (ir.wasm.memories.size() != 1) return;
  for (llvm::Loop* loop : loops.getLoopsInPreorder()) find_walks(*loop);
  for (Walk& walk : walks_) walk.is_repeated = is_repeated(walk);
  for (const llvm::Loop* outermost : loops)
    if (llvm::any_of(walks_, [&](const Walk& walk) { return outermost->contains(walk.loop); }))
      find_fields(*outermost);
}

// Does a loop around begin the walk anew? One around it may be part of it, as that over a skip list's levels is, and goes on where the
// walk within has ended.
bool NodeWalks::is_repeated(const Walk& walk) const {
  std::set<const llvm::Loop*> its{walk.loop};
  for (const llvm::Loop* around = walk.loop->getParentLoop(); around != nullptr;
       around = around->getParentLoop()) {
    const llvm::BasicBlock* const latch = around->getLoopLatch();
    if (latch == nullptr) return false;
    const bool goes_on = llvm::any_of(around->getHeader()->phis(), [&](const llvm::PHINode& phi) {
      const auto is_phi = [&](const Value& value) { return &value == &phi; };
      const auto is_link = [&](const Value& value) { return llvm::is_contained(walk.links, &value); };
      return llvm::any_of(walk.links,
                          [&](const llvm::LoadInst* link) {
                            return !trace(link->getPointerOperand(), loops_, its, is_phi).empty();
                          }) &&
             !trace(phi.getIncomingValueForBlock(latch), loops_, its, is_link).empty();
    });
    if (!goes_on) return true;
    its.insert(around);
  }
  return false;
}

void NodeWalks::find_walks(llvm::Loop& loop) {
  if (loop.getLoopLatch() == nullptr) return;
  const std::set<const llvm::Loop*> walked{&loop};
  for (llvm::BasicBlock* block : loop.blocks()) {
    if (loops_.getLoopFor(block) != &loop) continue;
    for (Instruction& instruction : *block) {
      auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load == nullptr || !is_of_guest(ir_, *load)) continue;
      if (!load->getType()->isIntegerTy(32) && !load->getType()->isIntegerTy(64)) continue;
      const auto* const base =
          llvm::dyn_cast<Instruction>(llvm::getUnderlyingObject(load->getPointerOperand(), 0));
      if (base != nullptr && loop.contains(base)) continue;
      std::set<size_t> others;  // walks of which this one's next node may be
      bool is_link = false;
      trace(load->getPointerOperand(), loops_, walked, [&](const Value& value) {
        is_link |= &value == load;
        if (const auto walk = links_.find(&value); walk != links_.end() && walks_[walk->second].loop == &loop)
          others.insert(walk->second);
        return &value == load;
      });
      if (!is_link) continue;
      walked_.insert(&loop);
      // The first of two links is found before it is known that the other one is of the same walk.
      const size_t walk = others.empty() ? walks_.size() : *others.begin();
      if (others.empty()) walks_.push_back({.loop = &loop});
      walks_[walk].links.push_back(load);
      links_.emplace(load, walk);
    }
  }
}

void NodeWalks::find_fields(const llvm::Loop& outermost) {
  for (const llvm::BasicBlock* block : outermost.blocks()) {
    for (const Instruction& instruction : *block) {
      if (!is_of_guest(ir_, instruction)) continue;
      const std::optional<Place> place = place_of(instruction);
      if (!place) continue;
      Walk& walk = walks_[place->walk];
      walk.fields.insert(place->offset);
      // Nothing that could be waited for lies between the node and what is read of it there.
      const bool is_at_once =
          place->is_carried
              ? block == walk.loop->getHeader()
              : llvm::any_of(walk.links, [&](const auto* link) { return block == link->getParent(); });
      if (is_at_once && !place->is_element) walk.at_once.insert(place->offset);
    }
  }
}

std::optional<NodeWalks::Place> NodeWalks::place_of(const Instruction& access) const {
  const std::vector<Origin> origins = trace(llvm::getLoadStorePointerOperand(&access), loops_, walked_,
                                            [&](const Value& value) { return links_.contains(&value); });
  if (origins.empty()) return std::nullopt;
  // Of several walks the one that it is in, or the last one.
  const auto depth_of = [&](const Origin& origin) {
    const llvm::Loop* const loop = walks_[links_.at(origin.value)].loop;
    return std::pair(loop->contains(&access), loop->getLoopDepth());
  };
  const Origin& origin = *std::ranges::max_element(origins, {}, depth_of);
  return Place{.walk = links_.at(origin.value),
               .offset = origin.offset,
               .is_element = origin.is_element,
               .is_carried = origin.is_carried};
}

bool NodeWalks::is_at_once(const Place& place) const {
  return !place.is_element && walks_[place.walk].at_once.contains(place.offset);
}

std::optional<NodeFetch> NodeWalks::fetch_for(const Instruction& access, const Place& place) {
  Walk& walk = walks_[place.walk];
  if (walk.links.size() > kMostLinksOfANode || std::abs(place.offset) > kMostNodeBytes) return std::nullopt;
  // What is read of a node only because the walk ends there, once and anywhere in an array, is not worth places in each iteration.
  // What is searched is: in a tree whose values are in its leaves the last node is where time goes.
  const bool is_once = loops_.getLoopDepth(access.getParent()) < walk.loop->getLoopDepth();
  if (!walk.loop->contains(&access) && (place.is_carried || (place.is_element && is_once)))
    return std::nullopt;
  int64_t end = place.offset + bytes_of(access);
  if (place.is_element) {
    const auto field = walk.fields.lower_bound(end);
    // One behind what is read at once may end there, as most towers of a skip list do.
    const bool is_apart = !is_near(walk.at_once, place.offset);
    if (field != walk.fields.end())
      end = std::min(*field, place.offset + kMostArrayBytes);
    else if (is_apart)
      end = place.offset + kUnknownArrayBytes;
  }
  NodeFetch fetch{.loop = walk.loop, .links = walk.links};
  bool is_late = false;
  const auto add = [&](int64_t at) {
    if (is_near(walk.at_once, at)) return;
    is_late = true;
    if (is_near(walk.fetched, at) || walk.fetched.size() >= kMostPlacesOfANode) return;
    walk.fetched.insert(at);
    fetch.places.push_back(at);
  };
  for (int64_t at = place.offset; at < end; at += kLineBytes) add(at);
  add(end - 1);
  if (!is_late) return std::nullopt;
  return fetch;
}

}  // namespace hindsight::jit::optimizing
