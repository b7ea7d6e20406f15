#include "jit/optimizing/emit/relocation_record.h"
#include "jit/optimizing/ir/names.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>

#include <charconv>
#include <iterator>

namespace hindsight::jit::optimizing {
namespace {

namespace jitlink = llvm::jitlink;
namespace x86_64 = llvm::jitlink::x86_64;

class Recorder {
 public:
  Recorder(jitlink::LinkGraph& graph, LinkedCode& code) : graph_(graph), code_(code) {}

  void run() {
    for (jitlink::Block* block : graph_.blocks())
      for (jitlink::Edge& edge : block->edges())
        if (edge.isRelocation()) record(*block, edge);
    if (code_.immovable.empty()) code_.relocations = std::move(relocations_);
  }

 private:
  using Kind = CodeRelocation::Kind;

  uint32_t place_of(llvm::orc::ExecutorAddr address) const {
    return static_cast<uint32_t>(address.toPtr<const std::byte*>() - code_.memory.executable());
  }
  static llvm::StringRef name_of(const jitlink::Symbol& symbol) {
    return symbol.hasName() ? symbol.getName() : llvm::StringRef();
  }
  // The address is the value: the same everywhere.
  static bool is_constant(const jitlink::Symbol& symbol) {
    return name_of(symbol) == kFrameBytesSymbol || name_of(symbol) == kPersonalitySymbol;
  }
  void give_up(const jitlink::Edge& edge) {
    if (code_.immovable.empty()) {
      code_.immovable = std::string("has a relocation ") + graph_.getEdgeKindName(edge.getKind()) + " to '" +
                        name_of(edge.getTarget()).str() + "'";
    }
  }

  void record(const jitlink::Block& block, jitlink::Edge& edge) {
    const uint32_t at = place_of(block.getAddress() + edge.getOffset());
    const jitlink::Symbol& target = edge.getTarget();
    switch (edge.getKind()) {
      case x86_64::Pointer64:
        return record_address(at, edge);
      case x86_64::Pointer32:
      case x86_64::Pointer32Signed:
      case x86_64::Pointer16:
      case x86_64::Pointer8:
        if (!is_constant(target)) give_up(edge);
        return;
      case x86_64::PCRel32GOTLoadRelaxable:
      case x86_64::PCRel32GOTLoadREXRelaxable:
        edge.setKind(x86_64::PCRel32);  // the same expression, and left alone
        break;
      case x86_64::BranchPCRel32ToPtrJumpStubBypassable:
        edge.setKind(x86_64::BranchPCRel32ToPtrJumpStub);
        return record_call(at, edge);
      case x86_64::Delta64:
      case x86_64::Delta32:
      case x86_64::Delta8:
      case x86_64::NegDelta64:
      case x86_64::NegDelta32:
      case x86_64::Delta64FromGOT:
      case x86_64::BranchPCRel32:
      case x86_64::BranchPCRel32ToPtrJumpStub:
      case x86_64::PCRel32:
        break;
      default:
        return give_up(edge);
    }
    // Distances stay what they are if both ends move together.
    if (!target.isDefined()) return give_up(edge);
    note_ends(at, edge);
  }

  // Whether an end is in the part that may be moved alone, and the other is not.
  void note_ends(uint32_t at, const jitlink::Edge& edge) {
    const bool from_hot = at < code_.hot_bytes;
    const bool to_hot = place_of(edge.getTarget().getAddress()) < code_.hot_bytes;
    if (from_hot == to_hot) return;
    const auto kind = edge.getKind();
    const bool four_bytes_of_code =
        kind == x86_64::BranchPCRel32 || kind == x86_64::PCRel32 || kind == x86_64::Delta32;
    if (from_hot && four_bytes_of_code) {
      relocations_.push_back({Kind::kDistance, at, 0, 0});
    } else if (from_hot || at >= code_.code_bytes) {
      // A table of jumps: whoever comes by it would leave the moved part.
      code_.hot_bytes = 0;
    }
  }

  void record_address(uint32_t at, const jitlink::Edge& edge) {
    const jitlink::Symbol& target = edge.getTarget();
    if (is_constant(target)) return;
    if (target.isDefined()) {
      relocations_.push_back({Kind::kImageAddress, at, 0, place_of(target.getAddress()) + edge.getAddend()});
      // Such a table with whole addresses.
      if (place_of(target.getAddress()) < code_.code_bytes) code_.hot_bytes = 0;
      return;
    }
    const std::string name = name_of(target).str();
    if (const auto function = outside_functions().find(name); function != outside_functions().end()) {
      relocations_.push_back(
          {Kind::kFunctionAddress, at, static_cast<uint32_t>(function->second), edge.getAddend()});
      return;
    }
    const std::string_view prefix = kCellPrefix;
    if (uint32_t cell = 0; name.starts_with(prefix)) {
      const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), cell);
      if (error == std::errc() && end == name.data() + name.size()) {
        relocations_.push_back({Kind::kCellAddress, at, cell, edge.getAddend()});
        return;
      }
    }
    give_up(edge);
  }

  // From the call over the stub and the table to the function.
  void record_call(uint32_t at, const jitlink::Edge& edge) {
    const jitlink::Edge* const jump = only_edge(edge.getTarget());
    const jitlink::Edge* const pointer = jump ? only_edge(jump->getTarget()) : nullptr;
    if (!pointer || edge.getAddend() != 0 || pointer->getAddend() != 0) return give_up(edge);
    const auto function = outside_functions().find(name_of(pointer->getTarget()).str());
    if (function == outside_functions().end()) return give_up(edge);
    relocations_.push_back({Kind::kCall, at, static_cast<uint32_t>(function->second),
                            int64_t{place_of(edge.getTarget().getAddress())}});
  }
  static const jitlink::Edge* only_edge(const jitlink::Symbol& symbol) {
    if (!symbol.isDefined() || symbol.getBlock().edges_size() != 1) return nullptr;
    return &*symbol.getBlock().edges().begin();
  }

  jitlink::LinkGraph& graph_;
  LinkedCode& code_;
  std::vector<CodeRelocation> relocations_;
};

}  // namespace

const std::map<std::string, OutsideFunction>& outside_functions() {
  static const std::map<std::string, OutsideFunction> functions = {{"memcpy", OutsideFunction::kMemcpy},
                                                                   {"memmove", OutsideFunction::kMemmove},
                                                                   {"memset", OutsideFunction::kMemset},
                                                                   {"memcmp", OutsideFunction::kMemcmp},
                                                                   {"bcmp", OutsideFunction::kMemcmp}};
  return functions;
}

void record_relocations(jitlink::LinkGraph& graph, LinkedCode& code) {
  Recorder(graph, code).run();
}

}  // namespace hindsight::jit::optimizing
