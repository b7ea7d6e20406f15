#include "jit/optimizing/link_code.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstring>
#include <optional>
#include <vector>

namespace hindsight::jit::optimizing {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::ExecutorAddr;
using llvm::orc::MemLifetime;
using llvm::orc::MemProt;

// What LLVM's passes may call where the program had a loop. They work on linear memory: a fault inside is
// recognized by its address, like one in generated code.
const void* outside_function(llvm::StringRef name) {
  if (name == "memcpy") return reinterpret_cast<const void*>(&std::memcpy);
  if (name == "memmove") return reinterpret_cast<const void*>(&std::memmove);
  if (name == "memset") return reinterpret_cast<const void*>(&std::memset);
  if (name == "memcmp" || name == "bcmp") return reinterpret_cast<const void*>(&std::memcmp);
  return nullptr;
}

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
    llvm::Align alignment(64);
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
    auto memory = arena_.allocate(std::max<size_t>(size, 1), alignment.value());
    if (!memory) return done(failure(memory.error().describe()));
    code_.memory = std::move(*memory);
    std::memset(code_.memory.writable().data(), 0xcc, code_.memory.writable().size());
    for (auto& [segment, offset] : places) {
      segment->Addr = ExecutorAddr::fromPtr(code_.memory.executable() + offset);
      segment->WorkingMem = reinterpret_cast<char*>(code_.memory.writable().data()) + offset;
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
};

class LinkContext : public jitlink::JITLinkContext {
 public:
  LinkContext(ArenaMemory& memory, LinkedCode& code, std::optional<std::string>& error)
      : JITLinkContext(nullptr), memory_(memory), code_(code), error_(error) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }
  void notifyFailed(llvm::Error error) override { error_ = llvm::toString(std::move(error)); }
  void lookup(const LookupMap& names,
              std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> go_on) override {
    jitlink::AsyncLookupResult found;
    for (const auto& [name, flags] : names) {
      const void* address = outside_function(name);
      if (!address) return go_on->run(failure("generated code needs unknown function " + name.str()));
      found[name] = {ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
    }
    go_on->run(std::move(found));
  }
  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName() || !symbol->isCallable()) continue;
      const auto* address = symbol->getAddress().toPtr<const std::byte*>();
      code_.symbols.emplace(symbol->getName().str(), address);
    }
    if (jitlink::Section* text = graph.findSectionByName(".text"); text && !text->empty()) {
      const jitlink::SectionRange range(*text);
      code_.text_offset =
          static_cast<uint32_t>(range.getStart().toPtr<const std::byte*>() - code_.memory.executable());
      code_.text_bytes = static_cast<uint32_t>(range.getSize());
    }
    return llvm::Error::success();
  }
  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override {
    allocation.release();  // LinkedCode::memory owns it
  }
  llvm::Error modifyPassConfig(jitlink::LinkGraph&, jitlink::PassConfiguration& passes) override {
    passes.PrePrunePasses.insert(passes.PrePrunePasses.begin(), [](jitlink::LinkGraph& graph) {
      std::vector<jitlink::Section*> unloaded;
      for (jitlink::Section& section : graph.sections())
        if (section.getMemLifetime() == MemLifetime::NoAlloc) unloaded.push_back(&section);
      for (jitlink::Section* section : unloaded) graph.removeSection(*section);
      return llvm::Error::success();
    });
    return llvm::Error::success();
  }

 private:
  ArenaMemory& memory_;
  LinkedCode& code_;
  std::optional<std::string>& error_;
};

}  // namespace

Result<LinkedCode> link_code(std::span<const char> object, CodeArena& arena) {
  auto graph = jitlink::createLinkGraphFromObject(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "hindsight"));
  if (!graph) return make_error(ErrorKind::kInternal, "linking: " + llvm::toString(graph.takeError()));
  LinkedCode code;
  std::optional<std::string> error;
  ArenaMemory memory(arena, code);
  jitlink::link(std::move(*graph), std::make_unique<LinkContext>(memory, code, error));
  if (error) return make_error(ErrorKind::kResource, "linking: " + *error);
  return code;
}

}  // namespace hindsight::jit::optimizing
