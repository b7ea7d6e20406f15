// IrModule: what all functions generated for one request share. That is the LLVM module, its types, the alias
// scopes, the debug scopes (one a wasm function) and the list of inline sites.
//
// Alias scopes. Everything that generated code reads or writes belongs to one of three disjoint worlds. They
// are the linear memory, the runtime's data (VmContext, globals, tables, ThreadState), and the loop cells. No
// access to one can touch another; saying so to LLVM is what lets it keep globals in registers and vectorize
// loops.
//
// Debug locations. line = module-absolute wasm offset; column = inline site + 1, 0 for the compiled function
// itself. The line table of the object alone therefore gives the complete pc map; scope and inlinedAt say the
// same in DWARF's words, for debuggers.
#pragma once

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "jit/abi/vm_context.h"
#include "jit/code/pc_map.h"
#include "jit/optimizing/ir/host_target.h"
#include "jit/optimizing/optimizer.h"
#include "jit/wasm/module.h"

namespace hindsight::jit::optimizing {

class IrModule {
 public:
  IrModule(llvm::LLVMContext& context, const OptimizeRequest& request, const HostTarget& host);

  llvm::Type* type_of(wasm::ValType type) const;
  // The native type of a wasm function: vmctx, then the parameters that have registers.
  llvm::FunctionType* native_type(const wasm::FuncType& type) const;
  // The same convention with every argument register named and no parameter's type. It is the one type shared
  // by all functions that may call each other at their tails (see generate_tail_calls.cc).
  llvm::FunctionType* erased_type(const wasm::FuncType& type) const;
  llvm::Type* native_result(const wasm::FuncType& type) const;

  // A definition with all attributes of generated code, and its own debug scope for wasm function `function`.
  llvm::Function* make_function(llvm::FunctionType* type, const std::string& name, FuncIndex function);
  // The debug scope of an inlined wasm function.
  llvm::DISubprogram* scope_of(FuncIndex function);
  // Registers one more inlined body. Precondition: room_for_inline_site().
  uint32_t add_inline_site(InlineSite site);
  // Columns of debug locations have 16 bits; this one says kLoopGoesOn.
  static constexpr unsigned kLoopGoesOnColumn = 65535;
  bool room_for_inline_site() const { return inline_sites.size() < kMaxInlineSites; }
  // The size of the largest frame, which only code generation knows: a symbol whose address is the number,
  // defined when the code is linked.
  llvm::Constant* frame_bytes();
  // The address of one of the version's loop cells, which linking fills in.
  llvm::Constant* loop_cell(uint32_t index);
  // The address of the nest's NestWork: until linking, when it gets the place after the last cell.
  llvm::Constant* nest_work();
  // What a function with landing pads must name for LLVM to write its exception table. Never called.
  llvm::Constant* personality();
  void finish_debug_info() { debug_.finalize(); }

  const OptimizeRequest& request;
  const wasm::Module& wasm;
  const VmLayout layout;
  llvm::LLVMContext& context;
  llvm::Module module;
  const HostTarget& host;

  llvm::Type* const void_type;
  llvm::IntegerType* const i1;
  llvm::IntegerType* const i8;
  llvm::IntegerType* const i16;
  llvm::IntegerType* const i32;
  llvm::IntegerType* const i64;
  llvm::Type* const f32;
  llvm::Type* const f64;
  llvm::PointerType* const ptr;
  llvm::Type* const f32x4;  // an xmm register
  llvm::Type* const v128;   // two 64-bit lanes; every vector operator casts to the lanes it means

  // Marks an access as one of a world (see above).
  enum class World { kMemory, kRuntime, kCells };
  template <typename Access>
  Access* mark(Access* access, World world) const {
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, scope_[static_cast<size_t>(world)]);
    access->setMetadata(llvm::LLVMContext::MD_noalias, others_[static_cast<size_t>(world)]);
    return access;
  }
  bool is_of(const llvm::Instruction& access, World world) const {
    return access.getMetadata(llvm::LLVMContext::MD_alias_scope) == scope_[static_cast<size_t>(world)];
  }
  // The same where the passes may have been. LLVM adds scopes of its own to accesses, and leaves out those in
  // which what it joined differs.
  bool is_among(const llvm::Instruction& access, World world) const;
  const llvm::Metadata* scope_of(World world) const {
    return scope_[static_cast<size_t>(world)]->getOperand(0);
  }

  // Weights of a conditional branch, from shares of its executions.
  llvm::MDNode* branch_weights(double taken, double not_taken) const;
  // Which memory's base `base` is, as the function with this vmctx loads it; empty: none's.
  std::optional<uint32_t> memory_of(const llvm::Value* base, const llvm::Value* vmctx) const;
  // The size that a memory begins with, and below which no access traps.
  uint64_t least_bytes(uint32_t memory) const;
  // Whether an access that ends at `base` + `end` is below it, and `base` is a memory's.
  bool is_always_there(const llvm::Value* base, const llvm::APInt& end, const llvm::Value* vmctx) const;

  // LLVM drops the debug location of an instruction that it moves. Loads and stores of linear memory carry
  // theirs a second time, because stalls and faults happen there.
  void remember_position(llvm::Instruction& access);
  // The remembered position of an access, else its debug location, else null.
  llvm::DILocation* position_of(const llvm::Instruction& access) const;
  // Gives accesses without a line theirs back. After the passes.
  void restore_positions();

  llvm::MDNode* unlikely = nullptr;  // branch weights: the first successor hardly ever
  // What the profile, or else the module, says about the branch or select at `offset`. The first successor is
  // for a condition that holds. Null: nothing.
  // `in_loop`: it stands in a loop, where what never happens is not told.
  llvm::MDNode* hinted_weights(WasmOffset offset, bool in_loop) const;
  // How often the innermost loop around the branch at `offset` was left there, of how many times (kExitCounts). `taken_leaves`: it is
  // left where the condition holds. LLVM is not told: it would unroll and vectorize for the mean of lengths that differ. Null: not seen.
  llvm::MDNode* exit_counts(WasmOffset offset, bool taken_leaves) const;
  llvm::MDNode* likely = nullptr;
  std::vector<InlineSite> inline_sites;
  bool polls_short_iterations = false;  // CodeVersion has the same
  std::set<uint32_t> inlined;

 private:
  // Bytes that linking knows the address of.
  llvm::Constant* outside_variable(const std::string& name, size_t bytes);

  static constexpr size_t kMaxInlineSites = 60000;
  llvm::DISubprogram* make_scope(FuncIndex function);

  std::unordered_map<uint32_t, BranchCounts> weighed_, one_sided_;  // by wasm offset
  unsigned position_kind_ = 0;
  std::vector<llvm::DILocation*> positions_;  // owned by the context
  llvm::DIBuilder debug_;
  llvm::DIFile* file_ = nullptr;
  llvm::DISubroutineType* scope_type_ = nullptr;
  std::unordered_map<uint32_t, llvm::DISubprogram*> scopes_;
  llvm::MDNode* scope_[3] = {};
  llvm::MDNode* others_[3] = {};
};

}  // namespace hindsight::jit::optimizing
