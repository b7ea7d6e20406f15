#include "jit/optimizing/pipeline.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <time.h>

#include <algorithm>
#include <set>

#include "jit/optimizing/form_pass.h"
#include "jit/optimizing/interleave_pass.h"
#include "jit/optimizing/jump_pass.h"
#include "jit/optimizing/loop_exits.h"
#include "jit/optimizing/protect.h"
#include "jit/optimizing/usual_trips.h"
#include "jit/optimizing/widen_pass.h"
#include "jit/optimizing/wider_vectors.h"

namespace hindsight::jit::optimizing {
namespace {

llvm::OptimizationLevel level_of(const Tuning& tuning) {
  switch (tuning.optimization_level) {
    case 0:
      return llvm::OptimizationLevel::O0;
    case 1:
      return llvm::OptimizationLevel::O1;
    case 2:
      return llvm::OptimizationLevel::O2;
    default:
      return llvm::OptimizationLevel::O3;
  }
}

// The default pipeline in its two halves, with the prefetch pass between them: before it, loops are
// simplified; after it, they are unrolled and widened.
bool run_passes(IrModule& ir, llvm::TargetMachine& machine, PrefetchPlan& prefetches, PassTimer& timer,
                PassLimits& limits) {
  const Tuning& tuning = ir.request.tuning;
  llvm::PipelineTuningOptions options;
  options.LoopVectorization = tuning.vectorize;
  options.SLPVectorization = tuning.vectorize;
  options.LoopInterleaving = tuning.vectorize;
  llvm::PassInstrumentationCallbacks callbacks;
  // Of each function once, in front of UnpinPass.
  std::set<const llvm::Function*> stores_removed;
  callbacks.registerShouldRunOptionalPassCallback([&](llvm::StringRef pass, llvm::Any unit) {
    if (pass == "DSEPass")
      if (const auto* const* function = llvm::any_cast<const llvm::Function*>(&unit))
        if (!stores_removed.insert(*function).second) return false;
    return !is_abandoned(ir.request);
  });
  timer.listen(callbacks);
  limits.listen(callbacks);
  llvm::PassBuilder builder(&machine, options, std::nullopt, &callbacks);
  // The first of these places is in front of SimplifyCFG: a branch whose arms only compute would count as a
  // need.
  builder.registerPeepholeEPCallback(
      [places = 0](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) mutable {
        if (++places != 2) return;
        passes.addPass(llvm::DSEPass());
        passes.addPass(UnpinPass());
      });
  // The managers refer to each other: declared in the order that lets them be destroyed.
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const llvm::OptimizationLevel level = level_of(tuning);
  if (level == llvm::OptimizationLevel::O0) {
    builder.buildO0DefaultPipeline(level).run(ir.module, modules);
    return true;
  }
  builder.buildModuleSimplificationPipeline(level, llvm::ThinOrFullLTOPhase::None).run(ir.module, modules);
  const bool exits = ir.request.loop_exits;
  const bool trips = std::ranges::any_of(
      prefetches.values, [&](const ValueHint& hint) { return is_of_loop(ir.wasm, hint); });
  if (!prefetches.empty() || exits || trips) {
    // Rotated, loops are counted by their latches; dead counters that a strip carries to the next only ADCE
    // sees as dead.
    ParkedExits parked;
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LoopRotatePass()));
    if (!prefetches.interleaves.empty()) {
      passes.addPass(ParkExitsPass(parked));
      passes.addPass(InterleavePass(prefetches));
      passes.addPass(UnparkExitsPass(ir, prefetches, parked));
      passes.addPass(llvm::LoopSimplifyPass());
      passes.addPass(llvm::LCSSAPass());
    }
    if (exits) {
      passes.addPass(LoopExitPass(ir));
      passes.addPass(llvm::LoopSimplifyPass());
      passes.addPass(llvm::LCSSAPass());
    }
    if (trips) {
      passes.addPass(llvm::LoopSimplifyPass());
      passes.addPass(llvm::LCSSAPass());
      passes.addPass(UsualTripsPass(prefetches));
    }
    if (!prefetches.empty()) {
      passes.addPass(PrefetchPass(prefetches));
      passes.addPass(llvm::ADCEPass());
    }
    llvm::ModulePassManager of_module;
    of_module.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    of_module.run(ir.module, modules);
    if (!prefetches.refused().empty()) return false;
  }
  if (tuning.vectorize) {
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::LoopSimplifyPass());
    passes.addPass(llvm::LCSSAPass());
    passes.addPass(WidenPass());
    if (ir.host.vector_bits != 0) {
      passes.addPass(llvm::LoopSimplifyPass());
      passes.addPass(llvm::LCSSAPass());
      passes.addPass(WiderVectorsPass(ir.host.vector_bits));
    }
    llvm::ModulePassManager of_module;
    of_module.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    of_module.run(ir.module, modules);
  }
  if (!prefetches.jumps.empty()) {
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::LoopSimplifyPass());
    passes.addPass(KeepTurnsPass(prefetches));
    llvm::ModulePassManager of_module;
    of_module.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    of_module.run(ir.module, modules);
  }
  builder.buildModuleOptimizationPipeline(level, llvm::ThinOrFullLTOPhase::None).run(ir.module, modules);
  if (!prefetches.conversions.empty() || !prefetches.values.empty()) {
    llvm::ModulePassManager of_module;
    of_module.addPass(llvm::createModuleToFunctionPassAdaptor(FormPass(prefetches)));
    of_module.run(ir.module, modules);
  }
  if (!prefetches.jumps.empty()) {
    llvm::ModulePassManager of_module;
    of_module.addPass(llvm::createModuleToFunctionPassAdaptor(JumpPass(prefetches)));
    of_module.run(ir.module, modules);
  }
  return true;
}

// What lets LLVM skip passes of code generation.
class AbandonGate final : public llvm::OptPassGate {
 public:
  explicit AbandonGate(const OptimizeRequest& request) : request_(request) {}
  bool shouldRunPass(llvm::StringRef, llvm::StringRef) override { return false; }
  bool isEnabled() const override { return is_abandoned(request_); }

 private:
  const OptimizeRequest& request_;
};

Status emit_file(llvm::Module& module, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out,
                 llvm::CodeGenFileType type, PassTimer& timer, PassLimits& limits) {
  llvm::legacy::PassManager passes;
  const auto into = timer.into(passes, limits);
  if (machine.addPassesToEmitFile(*into, out, nullptr, type, /*DisableVerify=*/true))
    return make_error(ErrorKind::kInternal, "LLVM cannot emit code for this target");
  timer.begin_codegen();
  passes.run(module);
  return {};
}

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

bool is_abandoned(const OptimizeRequest& request) {
  // Relaxed: nothing is published by it.
  return request.abandoned != nullptr && request.abandoned->load(std::memory_order_relaxed);
}

bool optimize(IrModule& ir, llvm::TargetMachine& machine, PrefetchPlan& prefetches,
              std::vector<PassTime>& times, PassTimer& timer, PassLimits& limits) {
  const double begin = thread_seconds();
  const bool complete = run_passes(ir, machine, prefetches, timer, limits);
  if (complete) ir.restore_positions();
  times.push_back({"optimize", thread_seconds() - begin});
  return complete;
}

Result<EmittedObject> emit(IrModule& ir, llvm::TargetMachine& machine, std::vector<PassTime>& times,
                           PassTimer& timer, PassLimits& limits) {
#ifndef NDEBUG
  std::string broken;
  llvm::raw_string_ostream broken_out(broken);
  if (llvm::verifyModule(ir.module, &broken_out))
    return make_error(ErrorKind::kInternal, "optimized IR is broken: " + broken);
#endif
  const double begin = thread_seconds();
  limits.measure_for_codegen(ir.module);
  EmittedObject object;
  if (ir.request.dump_ir) {
    llvm::raw_string_ostream text(object.dump);
    ir.module.print(text, nullptr);
    const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(ir.module);
    llvm::SmallVector<char, 0> assembly;
    llvm::raw_svector_ostream assembly_out(assembly);
    PassTimer untimed(false);
    HINDSIGHT_TRY(
        emit_file(*copy, machine, assembly_out, llvm::CodeGenFileType::AssemblyFile, untimed, limits));
    object.dump.append(assembly.begin(), assembly.end());
  }
  AbandonGate gate(ir.request);
  ir.context.setOptPassGate(gate);
  llvm::raw_svector_ostream out(object.bytes);
  HINDSIGHT_TRY(emit_file(ir.module, machine, out, llvm::CodeGenFileType::ObjectFile, timer, limits));
  times.push_back({"codegen", thread_seconds() - begin});
  return object;
}

}  // namespace hindsight::jit::optimizing
