#include "jit/optimizing/pipeline.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include "jit/optimizing/changes/change_passes.h"
#include "jit/optimizing/generate/protect.h"
#include "jit/optimizing/guard_llvm.h"
#include "jit/optimizing/ir/ir_shape.h"
#include "jit/optimizing/ir/ir_unit.h"
#include "jit/optimizing/pass_order.h"
#include "jit/optimizing/vectors/early_exit_pass.h"
#include "jit/optimizing/vectors/order_keeper.h"
#include "jit/optimizing/vectors/widen_pass.h"
#include "jit/optimizing/vectors/wider_vectors.h"
#include "jit/optimizing/versions/loop_exits.h"

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

// What passes over loops of ours ask for.
void simplify_loops(llvm::FunctionPassManager& passes) {
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
}

// LLVM's passes in two halves (pass_order.h), with those of changes (change_passes.h) between them and after them. Before the second half
// loops are simplified; in it, they are unrolled and widened.
Status run_passes(IrModule& ir, llvm::TargetMachine& machine, ChangeSet& changes, PassTimer& timer,
                  PassLimits& limits, Budget& budget) {
  const Tuning& tuning = ir.request.tuning;
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(
      [&](llvm::StringRef, llvm::Any) { return !budget.is_over(); });
  timer.listen(callbacks);
  limits.listen(callbacks);
  llvm::PassBuilder builder(&machine, llvm::PipelineTuningOptions(), std::nullopt, &callbacks);
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
  OrderKeeper order(ir, functions);
  order.listen(callbacks);
  const llvm::OptimizationLevel level = level_of(tuning);
  if (level == llvm::OptimizationLevel::O0) {
    builder.buildO0DefaultPipeline(level).run(ir.module, modules);
    return {};
  }
  std::string broken;  // by a change
  const auto run = [&](llvm::FunctionPassManager passes) -> Status {
    llvm::ModulePassManager of_module;
    of_module.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    of_module.run(ir.module, modules);
    if (!broken.empty()) return make_error(ErrorKind::kInternal, broken);
    return {};
  };
  llvm::FunctionPassManager first = simplifying_passes(ir, level);
  first.addPass(UnpinPass());
  HINDSIGHT_TRY(run(std::move(first)));
  const bool exits = ir.request.loop_exits;
  const std::vector<ChangePass> rotated = passes_of(Stage::kRotated, changes);
  const std::vector<ChangePass> leavable = passes_of(Stage::kLeavable, changes);
  if (exits || !rotated.empty() || !leavable.empty()) {
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LoopRotatePass()));
    for (const ChangePass& pass : rotated) add_verified(passes, pass, changes, broken);
    if (exits) {
      passes.addPass(LoopExitPass(ir));
      simplify_loops(passes);
    }
    for (const ChangePass& pass : leavable) add_verified(passes, pass, changes, broken);
    HINDSIGHT_TRY(run(std::move(passes)));
  }
  if (tuning.vectorize) {
    llvm::FunctionPassManager passes;
    simplify_loops(passes);
    passes.addPass(WidenPass(ir));
    if (ir.host.vector_bits != 0) {
      simplify_loops(passes);
      passes.addPass(WiderVectorsPass(ir, ir.host.vector_bits));
    }
    HINDSIGHT_TRY(run(std::move(passes)));
  }
  // One after the other over all functions: a change of a loop counts in all its copies.
  const auto run_changes = [&](Stage stage) -> Status {
    for (const ChangePass& pass : passes_of(stage, changes)) {
      llvm::FunctionPassManager passes;
      add_verified(passes, pass, changes, broken);
      HINDSIGHT_TRY(run(std::move(passes)));
    }
    return {};
  };
  HINDSIGHT_TRY(run_changes(Stage::kWidened));
  if (tuning.vectorize) {
    llvm::FunctionPassManager passes;
    simplify_loops(passes);
    passes.addPass(EarlyExitPass(ir));
    HINDSIGHT_TRY(run(std::move(passes)));
  }
  HINDSIGHT_TRY(run(lowering_passes(ir.request.options, tuning, level)));
  return run_changes(Stage::kOptimized);
}

Status emit_file(llvm::Module& module, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out,
                 llvm::CodeGenFileType type, PassTimer& timer, PassLimits& limits, Budget& budget) {
  WayOut way_out;
  Status left;
  llvm::legacy::PassManager passes;
  const auto into = timer.into(passes, limits, [&](size_t machine_instructions) {
    left = limits.check_machine(machine_instructions);
    if (left) left = budget.check();
    if (!left) way_out.leave();
  });
  if (machine.addPassesToEmitFile(*into, out, nullptr, type, /*DisableVerify=*/true))
    return make_error(ErrorKind::kInternal, "LLVM cannot emit code for this target");
  timer.begin_codegen();
  const LlvmWork at_work;
  if (!way_out.run([&] { passes.run(module); })) return left;
  return {};
}

}  // namespace

Status optimize(IrModule& ir, llvm::TargetMachine& machine, ChangeSet& changes, std::vector<PassTime>& times,
                PassTimer& timer, PassLimits& limits, Budget& budget) {
  const double begin = thread_seconds();
  const LlvmWork at_work;
  HINDSIGHT_TRY(run_passes(ir, machine, changes, timer, limits, budget));
  ir.restore_positions();
  times.push_back({"optimize", thread_seconds() - begin});
  return {};
}

Result<EmittedObject> emit(IrModule& ir, llvm::TargetMachine& machine, std::vector<PassTime>& times,
                           PassTimer& timer, PassLimits& limits, Budget& budget) {
  std::string broken;
  llvm::raw_string_ostream broken_out(broken);
  if (ir.request.verify && llvm::verifyModule(ir.module, &broken_out))
    return make_error(ErrorKind::kInternal, "optimized IR is broken: " + broken);
  const double begin = thread_seconds();
  limits.measure_for_codegen(ir.module);
  EmittedObject object;
  if (ir.request.dump_ir) {
    object.dump = shape_of(ir);
    llvm::raw_string_ostream text(object.dump);
    ir.module.print(text, nullptr);
    const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(ir.module);
    llvm::SmallVector<char, 0> assembly;
    llvm::raw_svector_ostream assembly_out(assembly);
    PassTimer untimed(false);
    HINDSIGHT_TRY(emit_file(*copy, machine, assembly_out, llvm::CodeGenFileType::AssemblyFile, untimed,
                            limits, budget));
    object.dump.append(assembly.begin(), assembly.end());
  }
  llvm::raw_svector_ostream out(object.bytes);
  HINDSIGHT_TRY(emit_file(ir.module, machine, out, llvm::CodeGenFileType::ObjectFile, timer, limits, budget));
  times.push_back({"codegen", thread_seconds() - begin});
  return object;
}

}  // namespace hindsight::jit::optimizing
