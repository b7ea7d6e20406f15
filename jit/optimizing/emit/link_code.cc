#include "jit/optimizing/emit/link_code.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectFileInterface.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "jit/optimizing/emit/relocation_record.h"
#include "jit/optimizing/ir/names.h"

namespace hindsight::jit::optimizing {
namespace {

constexpr uint64_t kLinkedAlignment = 64;

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;
using llvm::orc::ExecutorAddr;
using llvm::orc::MemLifetime;
using llvm::orc::MemProt;

llvm::Error failure(const std::string& words) {
  return llvm::make_error<llvm::StringError>(words, llvm::inconvertibleErrorCode());
}

bool is_executable(MemProt protection) {
  return (static_cast<unsigned>(protection) & static_cast<unsigned>(MemProt::Exec)) != 0;
}

class ArenaMemory : public jitlink::JITLinkMemoryManager {
 public:
  ArenaMemory(CodeArena& arena, LinkedCode& code) : arena_(arena), code_(code) {}

  void allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph, OnAllocatedFunction done) override {
    jitlink::BasicLayout layout(graph);
    size_t size = 0;
    llvm::Align alignment(kLinkedAlignment);
    std::vector<std::pair<jitlink::BasicLayout::Segment*, size_t>> places;
    // Code first: its offset in the allocation is its pc offset.
    for (const bool executable : {true, false}) {
      for (auto& [group, segment] : layout.segments()) {
        if (is_executable(group.getMemProt()) != executable) continue;
        size = llvm::alignTo(size, segment.Alignment);
        alignment = std::max(alignment, segment.Alignment);
        places.emplace_back(&segment, size);
        size += segment.ContentSize + segment.ZeroFillSize;
      }
      if (executable) code_.code_bytes = static_cast<uint32_t>(size);
    }
    if (alignment.value() > kLinkedAlignment) code_.immovable = "wants a larger alignment";
    auto memory = arena_.allocate(std::max<size_t>(size, 1), alignment.value());
    if (!memory) return done(failure(memory.error().describe()));
    code_.memory = std::move(*memory);
    // Until the code is linked: milliseconds that a fork has to wait.
    writing_.emplace(code_.memory);
    std::memset(writing_->bytes().data(), 0xcc, writing_->bytes().size());
    for (auto& [segment, offset] : places) {
      segment->Addr = ExecutorAddr::fromPtr(code_.memory.executable() + offset);
      segment->WorkingMem = reinterpret_cast<char*>(writing_->bytes().data()) + offset;
    }
    if (llvm::Error error = layout.apply()) return done(std::move(error));
    done(std::make_unique<InFlight>());
  }

  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction done) override {
    for (FinalizedAlloc& allocation : allocations) allocation.release();
    done(llvm::Error::success());
  }

 private:
  // The bytes are where they belong as soon as they are written: two views need no change of protection.
  class InFlight : public InFlightAlloc {
    void abandon(OnAbandonedFunction done) override { done(llvm::Error::success()); }
    void finalize(OnFinalizedFunction done) override { done(FinalizedAlloc(ExecutorAddr(1))); }
  };

  CodeArena& arena_;
  LinkedCode& code_;
  std::optional<CodeWriting> writing_;
};

// Keeps debug sections and tables for unwinding out of the arena and notes where things were placed.
class Observer : public orc::ObjectLinkingLayer::Plugin {
 public:
  explicit Observer(LinkedCode& code) : code_(code) {}

  void modifyPassConfig(orc::MaterializationResponsibility&, jitlink::LinkGraph&,
                        jitlink::PassConfiguration& passes) override {
    passes.PrePrunePasses.insert(passes.PrePrunePasses.begin(), [](jitlink::LinkGraph& graph) {
      std::vector<jitlink::Section*> unloaded;
      for (jitlink::Section& section : graph.sections())
        if (section.getMemLifetime() == MemLifetime::NoAlloc || section.getName() == ".eh_frame" ||
            section.getName() == ".gcc_except_table")
          unloaded.push_back(&section);
      for (jitlink::Section* section : unloaded) graph.removeSection(*section);
      return llvm::Error::success();
    });
    passes.PostAllocationPasses.push_back([this](jitlink::LinkGraph& graph) {
      note_places(graph);
      return llvm::Error::success();
    });
    // Before what would let code reach for what happens to be near.
    passes.PreFixupPasses.insert(passes.PreFixupPasses.begin(), [this](jitlink::LinkGraph& graph) {
      record_relocations(graph, code_);
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

 private:
  void note_places(jitlink::LinkGraph& graph) {
    for (jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName()) continue;
      if (!symbol->isCallable() && !symbol->getName().starts_with(kExitSlotPrefix)) continue;
      const auto* address = symbol->getAddress().toPtr<const std::byte*>();
      code_.symbols.emplace(symbol->getName().str(), address);
    }
    bool split = false;
    uint32_t hot_end = 0, first_cold = code_.code_bytes;
    for (jitlink::Section& section : graph.sections()) {
      if (section.empty() || !section.getName().starts_with(".text")) continue;
      const jitlink::SectionRange range(section);
      const auto offset =
          static_cast<uint32_t>(range.getStart().toPtr<const std::byte*>() - code_.memory.executable());
      const auto bytes = static_cast<uint32_t>(range.getSize());
      code_.texts[section.getName().str()] = {offset, bytes};
      const bool cold = section.getName().starts_with(kColdSectionPrefix);
      split |= cold;
      if (cold)
        first_cold = std::min(first_cold, offset);
      else
        hot_end = std::max(hot_end, offset + bytes);
    }
    if (split && hot_end <= first_cold) code_.hot_bytes = hot_end;
  }

  LinkedCode& code_;
};

// Adds the object to a dylib of its own and materializes everything in it.
llvm::Error link_in(orc::ExecutionSession& session, orc::ObjectLinkingLayer& layer,
                    std::span<const char> object, uint32_t frame_bytes,
                    std::span<const std::shared_ptr<LoopCell>> cells) {
  orc::JITDylib& dylib = session.createBareJITDylib("hindsight");
  orc::SymbolMap outside;
  for (const auto& [name, function] : outside_functions())
    outside[session.intern(name)] = {ExecutorAddr::fromPtr(address_of(function)),
                                     llvm::JITSymbolFlags::Exported};
  for (uint32_t i = 0; i < cells.size(); ++i) {
    outside[session.intern(cell_symbol(i))] = {ExecutorAddr::fromPtr(cells[i].get()),
                                               llvm::JITSymbolFlags::Exported};
  }
  outside[session.intern(kFrameBytesSymbol)] = {ExecutorAddr(frame_bytes), llvm::JITSymbolFlags::Exported};
  outside[session.intern(kPersonalitySymbol)] = {ExecutorAddr(), llvm::JITSymbolFlags::Exported};
  if (llvm::Error error = dylib.define(orc::absoluteSymbols(std::move(outside)))) return error;
  auto buffer = llvm::MemoryBuffer::getMemBuffer(llvm::StringRef(object.data(), object.size()), "hindsight",
                                                 /*RequiresNullTerminator=*/false);
  auto interface = orc::getObjectFileInterface(session, buffer->getMemBufferRef());
  if (!interface) return interface.takeError();
  orc::SymbolLookupSet wanted;
  for (const auto& [name, flags] : interface->SymbolFlags) wanted.add(name);
  if (llvm::Error error = layer.add(dylib, std::move(buffer), std::move(*interface))) return error;
  return session
      .lookup(orc::makeJITDylibSearchOrder(&dylib, orc::JITDylibLookupFlags::MatchAllSymbols),
              std::move(wanted))
      .takeError();
}

}  // namespace

Result<LinkedCode> link_code(std::span<const char> object, CodeArena& arena, uint32_t frame_bytes,
                             std::span<const std::shared_ptr<LoopCell>> cells) {
  LinkedCode code;
  std::string reported;
  ArenaMemory memory(arena, code);
  orc::ExecutionSession session(std::make_unique<orc::UnsupportedExecutorProcessControl>());
  session.setErrorReporter([&](llvm::Error error) { reported += llvm::toString(std::move(error)) + "; "; });
  llvm::Error error = llvm::Error::success();
  {
    orc::ObjectLinkingLayer layer(session, memory);
    layer.addPlugin(std::make_unique<Observer>(code));
    error = llvm::joinErrors(std::move(error), link_in(session, layer, object, frame_bytes, cells));
    // Drops the dylib's claim on the memory, which LinkedCode owns.
    error = llvm::joinErrors(std::move(error), session.endSession());
  }
  if (error)
    return make_error(ErrorKind::kResource, "linking: " + reported + llvm::toString(std::move(error)));
  if (!code.immovable.empty()) code.relocations.reset();
  if (!code.relocations) code.hot_bytes = 0;
  // From here on as it is done wherever the code is moved to.
  if (code.relocations) relocate(*code.relocations, code.memory, cells);
  return code;
}

}  // namespace hindsight::jit::optimizing
