#include "jit/optimizing/pass_limits.h"

#include <llvm/Analysis/LazyCallGraph.h>
#include <llvm/Analysis/LoopInfo.h>

#include <algorithm>
#include <span>

#include "jit/optimizing/ir/ir_unit.h"

namespace hindsight::jit::optimizing {
namespace {

constexpr size_t kAny = ~size_t{0};

struct Limit {
  const char* pass;
  size_t instructions, blocks, longest_block, loops;
};

// What takes about a tenth of a second at the limit, and grows with the square of the measure or faster.
constexpr Limit kLimits[] = {
    // Chains of loops, each of which begins where the last one ended.
    {"IndVarSimplifyPass", kAny, kAny, kAny, 64},
    {"LoopIdiomRecognizePass", kAny, kAny, kAny, 64},
    {"LoopVectorizePass", kAny, kAny, kAny, 100},
    {"LoopFullUnrollPass", kAny, kAny, kAny, 100},
    {"LoopUnrollPass", kAny, kAny, kAny, 100},
    {"Loop Strength Reduction", kAny, 3'000, kAny, 40},
    // Facts about values, asked for across blocks.
    {"NumberValuesPass", 20'000, 800, kAny, kAny},
    {"JumpThreadingPass", 40'000, 1'500, kAny, kAny},
    {"CorrelatedValuePropagationPass", 40'000, 1'500, kAny, kAny},
    {"InstCombinePass", 60'000, 2'000, kAny, kAny},
    {"ConstraintEliminationPass", 20'000, 800, kAny, kAny},
    {"SimpleLoopUnswitchPass", 20'000, 1'000, kAny, kAny},
    // Accesses, each compared with those around it.
    {"SLPVectorizerPass", 40'000, 2'000, 1'200, kAny},
    // Code generation. Without the schedulers instructions stay in the order that selection gave them.
    {"Machine Instruction Scheduler", 60'000, kAny, 1'000, kAny},
    {"Live Range Shrink", 20'000, kAny, 2'000, kAny},
    {"Machine InstCombiner", 20'000, kAny, 2'000, kAny},
    // Its blocks are more than ours: selection makes some of selects.
    {"Branch Probability Basic Block Placement", 6'000, 600, kAny, kAny},
    {"Control Flow Optimizer", 60'000, 3'000, kAny, kAny},
    {"X86 cmov Conversion", 60'000, 3'000, kAny, kAny},
};

// What no function gets: time for nothing that was measured, of which the first two took 5 % of a compilation. The first writes down
// where debuggers find variables, of which there are none; the second orders instructions for processors that do not do it
// themselves. Without the others not one of 3,782 functions and loops had other code.
constexpr llvm::StringLiteral kOfNoUse[] = {"Live DEBUG_VALUE analysis",
                                            "Post RA top-down list latency scheduler",
                                            "Canonicalize Freeze Instructions in Loops",
                                            "Early If-Conversion",
                                            "Expand memcmp() to load/stores",
                                            "Local Dynamic TLS Access Clean-up",
                                            "Merge contiguous icmps into a memcmp",
                                            "Merge disjoint stack slots",
                                            "Tile Register Pre-configure",
                                            "X86 Domain Reassignment Pass",
                                            "X86 Load Value Injection (LVI) Load Hardening"};

// What is for code that is never made here: with collectors of garbage, safepoints, probes and profiling hooks, for mitigations and kinds
// of functions that none has, variables of threads, tiles of AMX, addresses of labels, vectors under masks of lengths, libraries of vectors,
// other systems. Each looks at every function nevertheless, and LLVM works out in every compile what it needs and leaves.
constexpr llvm::StringLiteral kForOthers[] = {
    "Analyze Machine Code For Garbage Collection",
    "Contiguously Lay Out Funclets",
    "Expand indirectbr instructions",
    "Expand vector predication intrinsics",
    "Fixup Statepoint Caller Saved",
    "Implement the 'patchable-function' attribute",
    "Init Undef Pass",
    "Insert KCFI indirect call checks",
    "Insert XRay ops",
    "Insert fentry calls",
    "Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
    "Lower AMX intrinsics",
    "Lower AMX type for load/store",
    "Lower Garbage Collection Instructions",
    "Machine Sanitizer Binary Metadata",
    "Partially inline calls to library functions",
    "Prepare callbr",
    "Pseudo Probe Inserter",
    "Register Allocation Pass Scoring",
    "Remove Redundant DEBUG_VALUE analysis",
    "Replace intrinsics with calls to vector library",
    "Safe Stack instrumentation pass",
    "Shadow Stack GC Lowering",
    "Stack Frame Layout Analysis",
    "StackMap Liveness Analysis",
    "TLS Variable Hoist",
    "Tile Register Configure",
    "X86 Atom pad short functions",
    "X86 Discriminate Memory Operands",
    "X86 DynAlloca Expander",
    "X86 Indirect Branch Tracking",
    "X86 Indirect Thunks",
    "X86 Insert Cache Prefetches",
    "X86 Load Value Injection (LVI) Ret-Hardening",
    "X86 Lower Tile Copy",
    "X86 PIC Global Base Reg Initialization",
    "X86 Return Thunks",
    "X86 Speculative Execution Side Effect Suppression",
    "X86 Windows Fixup Buffer Security Check",
    "X86 insert wait instruction",
    "X86 speculative load hardening"};

// Makes two stores of one, of which the first is made where the second traps.
constexpr llvm::StringLiteral kTearsStores = "X86 Avoid Store Forwarding Blocks";

// Makes conditional moves branches, where those would not make a loop's iterations wait if they were predicted well. That is a guess: of
// one shape, by another.
constexpr llvm::StringLiteral kGuessesBranches = "X86 cmov Conversion";

// A function that might reach one of them is looked at before each pass.
constexpr size_t kWatchedInstructions = 500, kWatchedBlocks = 200, kWatchedLoops = 8;

Error too_large(const std::string& what, uint64_t count, uint64_t limit) {
  return Error{ErrorKind::kResource,
               "too large for the optimizing tier: " + std::to_string(count) + " " + what +
                   ", the limit is " + std::to_string(limit),
               {},
               {}};
}

}  // namespace

uint32_t bytes_to_compile(const OptimizeRequest& request) {
  const wasm::FunctionBody& body = request.module->body(request.function);
  if (!request.nest) return body.end.value - body.begin.value;
  const wasm::LoopInfo& root = body.loops[request.nest->value];
  return root.end.value + 1 - root.offset.value;
}

Status check_body(const OptimizeRequest& request) {
  const uint32_t bytes = bytes_to_compile(request);
  if (bytes > kMostBodyBytes) return std::unexpected(too_large("bytes", bytes, kMostBodyBytes));
  // The nest's loops stand together, after its root.
  std::span<const wasm::LoopInfo> loops = request.module->body(request.function).loops;
  uint32_t outside = 0;
  if (request.nest) {
    loops = loops.subspan(request.nest->value);
    outside = loops.front().depth;
    const WasmOffset end = loops.front().end;
    const auto after =
        std::ranges::find_if(loops, [&](const wasm::LoopInfo& loop) { return loop.offset > end; });
    loops = loops.first(static_cast<size_t>(after - loops.begin()));
  }
  if (loops.size() > kMostLoops) return std::unexpected(too_large("loops", loops.size(), kMostLoops));
  uint32_t depth = 0;
  for (const wasm::LoopInfo& loop : loops) depth = std::max(depth, loop.depth + 1 - outside);
  if (depth > kMostLoopDepth)
    return std::unexpected(too_large("levels of nested loops", depth, kMostLoopDepth));
  return {};
}

Status check_generated(const llvm::Function& function, size_t locals, bool moves_too_much) {
  if (moves_too_much)
    return std::unexpected(too_large("or more values passed along branches and to callees",
                                     kMostMovedValues + 1, kMostMovedValues));
  const size_t product = locals * function.size();
  if (product <= kMostLocalsTimesBlocks) return {};
  return std::unexpected(too_large("locals times blocks", product, kMostLocalsTimesBlocks));
}

IrSize PassLimits::size_of(const llvm::Function& function) const {
  IrSize size;
  for (const llvm::BasicBlock& block : function) {
    const size_t length = block.size();
    ++size.blocks;
    size.instructions += length;
    size.longest_block = std::max(size.longest_block, length);
  }
  const auto found = loops_.find(&function);
  if (found != loops_.end()) size.loops = found->second;
  return size;
}

void PassLimits::note(const llvm::Function& function, size_t loops) {
  loops_[&function] = loops;
  const IrSize size = size_of(function);
  all_.instructions += size.instructions;
  all_.blocks += size.blocks;
  all_.longest_block = std::max(all_.longest_block, size.longest_block);
  all_.loops += loops;
  watches_ |=
      size.instructions > kWatchedInstructions || size.blocks > kWatchedBlocks || loops > kWatchedLoops;
}

Status PassLimits::check() const {
  if (all_.instructions > kMostInstructions)
    return std::unexpected(too_large("instructions", all_.instructions, kMostInstructions));
  if (all_.longest_block > kMostInOneBlock)
    return std::unexpected(too_large("instructions in one block", all_.longest_block, kMostInOneBlock));
  if (all_.blocks > kMostBlocks) return std::unexpected(too_large("blocks", all_.blocks, kMostBlocks));
  if (all_.loops > kMostLoops) return std::unexpected(too_large("loops", all_.loops, kMostLoops));
  return {};
}

Status PassLimits::check_grown() const {
  if (grown_to_ == 0) return {};
  return std::unexpected(
      too_large("instructions after some of LLVM's passes", grown_to_, kMostGrownInstructions));
}

Status PassLimits::check_machine(size_t instructions) const {
  if (instructions <= kMostMachineInstructions) return {};
  return std::unexpected(too_large("machine instructions", instructions, kMostMachineInstructions));
}

bool PassLimits::allows(llvm::StringRef pass, const IrSize& size) {
  for (const Limit& limit : kLimits) {
    if (pass != limit.pass) continue;
    const auto above = [&](size_t count, size_t most, const char* what) {
      if (count <= most) return false;
      left_out_.insert(pass.str() + " (more than " + std::to_string(most) + " " + what + ")");
      return true;
    };
    return !above(size.instructions, limit.instructions, "instructions") &&
           !above(size.blocks, limit.blocks, "blocks") &&
           !above(size.longest_block, limit.longest_block, "instructions in a block") &&
           !above(size.loops, limit.loops, "loops");
  }
  return true;
}

void PassLimits::listen(llvm::PassInstrumentationCallbacks& callbacks) {
  if (!watches_) return;
  callbacks.registerShouldRunOptionalPassCallback([this](llvm::StringRef pass, llvm::Any unit) {
    const llvm::Function* const function = function_of(unit);
    if (function == nullptr) return grown_to_ == 0;
    const IrSize size = size_of(*function);
    if (size.instructions > kMostGrownInstructions) grown_to_ = size.instructions;
    return grown_to_ == 0 && allows(pass, size);
  });
}

void PassLimits::measure_for_codegen(const llvm::Module& module) {
  largest_ = {};
  for (const llvm::Function& function : module) {
    const IrSize size = size_of(function);
    largest_.instructions = std::max(largest_.instructions, size.instructions);
    largest_.blocks = std::max(largest_.blocks, size.blocks);
    largest_.longest_block = std::max(largest_.longest_block, size.longest_block);
    largest_.loops = std::max(largest_.loops, size.loops);
  }
}

bool PassLimits::allows_codegen(llvm::StringRef pass) {
  const auto is_in = [&](std::span<const llvm::StringLiteral> passes) {
    return std::find(passes.begin(), passes.end(), pass) != passes.end();
  };
  if (is_in(kOfNoUse) || is_in(kForOthers)) return false;
  if (pass == kTearsStores) return false;
  if (selects_stay_ && pass == kGuessesBranches) return false;
  return allows(pass, largest_);
}

std::string PassLimits::left_out() const {
  std::string words;
  for (const std::string& pass : left_out_) words += (words.empty() ? "" : ", ") + pass;
  return words;
}

}  // namespace hindsight::jit::optimizing
