// One compilation from request to code version; the shared object's only export.
#include "jit/optimizing/optimizer.h"

#include <dlfcn.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "jit/optimizing/budget.h"
#include "jit/optimizing/changes/change_set.h"
#include "jit/optimizing/changes/split_cold/cold_parts.h"
#include "jit/optimizing/context_reads.h"
#include "jit/optimizing/cut_chains.h"
#include "jit/optimizing/emit/exception_table.h"
#include "jit/optimizing/emit/link_code.h"
#include "jit/optimizing/emit/pc_rows.h"
#include "jit/optimizing/generate/call_order.h"
#include "jit/optimizing/generate/function_generator.h"
#include "jit/optimizing/generate/protect.h"
#include "jit/optimizing/guard_llvm.h"
#include "jit/optimizing/ir/entry_names.h"
#include "jit/optimizing/ir/names.h"
#include "jit/optimizing/ir/target_machines.h"
#include "jit/optimizing/mark_checks.h"
#include "jit/optimizing/pipeline.h"
#include "jit/optimizing/vectors/access_order.h"
#include "jit/optimizing/vectors/early_return.h"
#include "jit/optimizing/versions/loop_exits.h"
#include "jit/wasm/loop_nests.h"

extern "C" hindsight::jit::Optimizer* hindsight_create_optimizer();

namespace hindsight::jit::optimizing {
namespace {

// What LLVM has to say instead of printing it.
struct Diagnostics {
  std::string error;
  uint64_t largest_frame = 0;
};

void on_diagnostic(const llvm::DiagnosticInfo* info, void* context) {
  auto* diagnostics = static_cast<Diagnostics*>(context);
  if (const auto* frame = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(info)) {
    diagnostics->largest_frame = std::max(diagnostics->largest_frame, frame->getResourceSize());
    return;
  }
  if (info->getSeverity() != llvm::DS_Error || !diagnostics->error.empty()) return;
  llvm::raw_string_ostream text(diagnostics->error);
  llvm::DiagnosticPrinterRawOStream printer(text);
  info->print(printer);
}

Status verify(llvm::Function& function) {
  std::string broken;
  llvm::raw_string_ostream text(broken);
  if (llvm::verifyFunction(function, &text)) {
    function.print(text);
    return make_error(ErrorKind::kInternal, "generated IR is broken: " + broken);
  }
  return {};
}

// Generates the function and its OSR entries, or the nest. Returns whether all of them check the stack.
Result<bool> generate(IrModule& ir, bool always_check_stack, PassLimits& limits) {
  const OptimizeRequest& request = ir.request;
  const wasm::FuncType& type = ir.wasm.type_of(request.function);
  bool all_check = true;
  const auto finish = [&](llvm::Function& function, const FunctionGenerator& generator) -> Status {
    function.addFnAttr("warn-stack-size", "0");  // reports every frame's size, see on_diagnostic
    HINDSIGHT_TRY(check_generated(function, generator.slots().size(), generator.moves_too_much()));
    protect_semantics(ir, function, generator);
    cut_chains(function);
    limits.note(function, generator.loops());
    all_check = all_check && generator.checks_stack();
    return limits.check();
  };
  const auto verified = [&]() -> Result<bool> {
    ir.finish_debug_info();
    for (llvm::Function& function : ir.module)
      if (request.verify && !function.isDeclaration()) HINDSIGHT_TRY(verify(function));
    return all_check;
  };
  if (request.nest) {
    llvm::Function* const nest = ir.make_function(llvm::FunctionType::get(ir.i32, {ir.ptr, ir.ptr}, false),
                                                  nest_name(*request.nest), request.function);
    FunctionGenerator generator(ir, request.function, nest, /*whole=*/nullptr);
    generator.set_always_check_stack(always_check_stack);
    generator.generate_nest(*request.nest);
    HINDSIGHT_TRY(finish(*nest, generator));
    return verified();
  }
  const bool tail_calls = ir.wasm.body(request.function).has_tail_calls;
  llvm::FunctionType* const whole_type = tail_calls ? ir.erased_type(type) : ir.native_type(type);
  llvm::Function* const whole = ir.make_function(whole_type, kEntryName, request.function);
  FunctionGenerator generator(ir, request.function, whole, whole);
  generator.set_always_check_stack(always_check_stack);
  generator.generate();
  HINDSIGHT_TRY(finish(*whole, generator));
  llvm::FunctionType* const osr_type =
      tail_calls ? ir.erased_type(type)
                 : llvm::FunctionType::get(ir.native_result(type), {ir.ptr, ir.ptr}, false);
  for (const OsrPoint& point : generator.osr_points()) {
    llvm::Function* const osr = ir.make_function(osr_type, osr_name(point.loop), request.function);
    FunctionGenerator remainder(ir, request.function, osr, whole);
    remainder.set_always_check_stack(always_check_stack);
    remainder.generate_from(point);
    HINDSIGHT_TRY(finish(*osr, remainder));
  }
  // The whole body was generated for what its loops' entries begin with.
  if (request.loop_entries_only && !generator.osr_points().empty() && whole->use_empty())
    whole->eraseFromParent();
  return verified();
}

// One compilation, which may have to begin anew with what it learned.
class Compilation {
 public:
  Compilation(const OptimizeRequest& request, CodeArena& arena, TargetMachines& machines)
      : request_(request), arena_(arena), machines_(machines), host_(host_target(request.tuning)) {}

  // Says why where there is no code.
  Result<OptimizeResult> run() {
    auto result = [&]() -> Result<OptimizeResult> {
      try {
        return compile();
      } catch (const std::bad_alloc&) {
        no_memory_ = true;
        // So short that the string has room for it in itself: there is no memory for words.
        return make_error(ErrorKind::kResource, "no memory left");
      }
    }();
    if (result || request_.no_code == nullptr) return result;
    *request_.no_code = budget_.why()                                 ? *budget_.why()
                        : no_memory_                                  ? NoCode::kNoMemory
                        : result.error().kind == ErrorKind::kResource ? NoCode::kTooLarge
                                                                      : NoCode::kDefect;
    return result;
  }

 private:
  Result<OptimizeResult> compile() {
    const double begin = thread_seconds();
    const wasm::FunctionBody& body = request_.module->body(request_.function);
    if (request_.nest) {
      const std::string_view why =
          request_.nest->value < body.loops.size()
              ? wasm::why_no_nest(*request_.module, request_.function, *request_.nest)
              : "there is no such loop";
      if (!why.empty())
        return make_error(ErrorKind::kUsage, "the loop cannot be a nest: " + std::string(why));
    }
    HINDSIGHT_TRY(check_body(request_));
    const bool large =
        body.end.value - body.begin.value > kMostBodyBytesForOsr || body.loops.size() > kMostLoopsForOsr;
    if (large && request_.osr_loops.size() > 1) request_.osr_loops = {request_.osr_loops.back()};
    // A new beginning checks the stack.
    HINDSIGHT_TRY(budget_.check_begin());
    while (!result_.version) HINDSIGHT_TRY(guarded_by_llvm_wall([&] { return attempt(); }, no_memory_));
    CodeVersion& version = *result_.version;
    version.pass_times = std::move(times_);
    result_.passes = timer_.costs();
    version.compile_seconds = thread_seconds() - begin;
    return std::move(result_);
  }

  // Leaves result_.version empty to begin anew.
  Status attempt() {
    double mark = thread_seconds();
    const auto lap = [&](const char* name) {
      const double now = thread_seconds();
      times_.push_back({name, now - mark});
      mark = now;
    };
    std::optional<LlvmWork> at_work(std::in_place);
    HINDSIGHT_ASSIGN(std::unique_ptr<llvm::TargetMachine> machine,
                     machines_.take(host_, request_.tuning, request_.split_cold));
    llvm::LLVMContext context;
    Diagnostics diagnostics;
    context.setDiagnosticHandlerCallBack(on_diagnostic, &diagnostics);
    IrModule ir(context, request_, host_);
    ir.module.setDataLayout(machine->createDataLayout());
    ir.module.setTargetTriple(host_.triple);
    PassLimits limits(request_.selects_stay);
    lap("set up");
    HINDSIGHT_ASSIGN(const bool all_check_stack, generate(ir, always_check_stack_, limits));
    lap("generate IR");
    ChangeSet changes(ir);
    HINDSIGHT_TRY(budget_.check());
    HINDSIGHT_TRY(optimize(ir, *machine, changes, times_, timer_, limits, budget_));
    HINDSIGHT_TRY(budget_.check());
    if (request_.only_with_changes && changes.cells.empty()) {
      at_work.reset();
      machines_.give_back(request_.tuning, std::move(machine));
      result_.version = std::make_unique<CodeVersion>();
      result_.version->function = request_.function;
      result_.version->tier = Tier::kOptimized;
      result_.version->nest = request_.nest;
      result_.version->answers = changes.answers();
      return {};
    }
    HINDSIGHT_TRY(limits.check_grown());
    if (llvm::Function* const whole = ir.module.getFunction(kEntryName)) split_early_return(ir, *whole);
    for (llvm::Function& function : ir.module) read_context_where_needed(function);
    keep_order_of_accesses(ir);
    look_at_mark_beside_long_calls(ir);
    if (request_.split_cold) mark_for_splitting(ir.module);
    // Linked like a cell, whatever cells there came to be.
    std::shared_ptr<NestWork> work;
    std::vector<std::shared_ptr<LoopCell>> cells = changes.cells;
    if (llvm::GlobalVariable* const counted = ir.module.getNamedGlobal(kNestWorkSymbol)) {
      counted->setName(cell_symbol(static_cast<uint32_t>(cells.size())));
      work = std::make_shared<NestWork>();
      cells.push_back({work, reinterpret_cast<LoopCell*>(work.get())});  // for its address alone
    }
    HINDSIGHT_ASSIGN(EmittedObject object, emit(ir, *machine, times_, timer_, limits, budget_));
    HINDSIGHT_TRY(budget_.check());
    if (!diagnostics.error.empty()) return make_error(ErrorKind::kInternal, "LLVM: " + diagnostics.error);
    if (!all_check_stack && diagnostics.largest_frame > FunctionGenerator::kUncheckedLeafBytes) {
      always_check_stack_ = true;
      result_.begun_anew =
          "a frame of " + std::to_string(diagnostics.largest_frame) + " bytes needs a stack check";
      return {};
    }
    at_work.reset();  // locks are taken below
    machines_.give_back(request_.tuning, std::move(machine));
    mark = thread_seconds();
    // The frame is taken before the check. So it has to fit, with the call of the builtin below it, into the
    // least that any stack has below its limit (runtime/exec/enter.cc). Baseline code checks first, and has
    // larger ones.
    constexpr uint64_t kLargestFrame = 32 << 10;
    constexpr uint64_t kCallBytes = 256;  // return addresses and arguments of a call out of the frame
    if (diagnostics.largest_frame > kLargestFrame)
      return make_error(ErrorKind::kResource, "a frame of " + std::to_string(diagnostics.largest_frame) +
                                                  " bytes is larger than the limit of " +
                                                  std::to_string(kLargestFrame));
    HINDSIGHT_ASSIGN(LinkedCode code,
                     link_code(object.bytes, arena_,
                               static_cast<uint32_t>(diagnostics.largest_frame + kCallBytes), cells));
    lap("link");

    auto version = std::make_unique<CodeVersion>();
    HINDSIGHT_ASSIGN(version->pc_map, make_pc_map(object.bytes, code, ir.inline_sites));
    lap("pc map");
    std::vector<std::string> functions;
    for (const llvm::Function& function : ir.module)
      if (!function.isDeclaration()) functions.push_back(function.getName().str());
    HINDSIGHT_TRY(add_exception_handlers(object.bytes, code, functions, version->handlers));
    version->function = request_.function;
    version->tier = Tier::kOptimized;
    version->code_size = CodeOffset(code.code_bytes);
    version->hot_bytes = CodeOffset(code.hot_bytes);
    const auto symbol = [&](const std::string& name) -> const void* {
      const auto found = code.symbols.find(name);
      return found == code.symbols.end() ? nullptr : found->second;
    };
    version->entry = symbol(kEntryName);
    for (LoopIndex loop : request_.osr_loops)
      if (const void* entry = symbol(osr_name(loop))) version->osr_entries.push_back({loop, entry});
    version->nest = request_.nest;
    if (request_.nest)
      if (const void* entry = symbol(nest_name(*request_.nest)))
        version->osr_entries.push_back({*request_.nest, entry, OsrEntry::Kind::kNest});
    const bool without_whole = request_.nest || request_.loop_entries_only;
    if (!version->entry && (!without_whole || version->osr_entries.empty()))
      return make_error(ErrorKind::kInternal, "linked code has no entry");
    for (uint32_t function : ir.inlined) version->inlined.push_back(FuncIndex(function));
    version->loop_cells = std::move(changes.cells);
    version->work = std::move(work);
    version->polls_short_iterations = ir.polls_short_iterations;
    version->answers = changes.answers();
    version->memory = std::move(code.memory);
    const auto add_exit = [&](LoopIndex loop) {
      if (const void* slot = symbol(exit_symbol(loop)))
        version->add_exit(
            loop, CodeOffset(static_cast<uint32_t>(static_cast<const std::byte*>(slot) - version->begin())));
    };
    const auto loops = static_cast<uint32_t>(ir.wasm.body(request_.function).loops.size());
    if (request_.nest) add_exit(*request_.nest);
    for (uint32_t loop = 0; !request_.nest && loop < loops; ++loop) add_exit(LoopIndex(loop));
    version->relocations = std::move(code.relocations);
    result_.version = std::move(version);
    result_.left_out = limits.left_out();
    result_.dump = changes.fetches + object.dump;
    return {};
  }

  OptimizeRequest request_;
  CodeArena& arena_;
  TargetMachines& machines_;
  const HostTarget host_;
  bool always_check_stack_ = false;
  std::vector<PassTime> times_;
  PassTimer timer_{request_.time_passes};
  Budget budget_{request_};
  OptimizeResult result_;
  bool no_memory_ = false;
};

class LlvmOptimizer : public Optimizer {
 public:
  Result<OptimizeResult> compile(const OptimizeRequest& request, CodeArena& arena) override {
    if (!request.module || request.function.value >= request.module->function_count() ||
        request.module->is_imported(request.function))
      return make_error(ErrorKind::kUsage, "only functions defined in the module can be compiled",
                        "function " + std::to_string(request.function.value));
    return Compilation(request, arena, machines_).run();
  }

  std::vector<uint32_t> order_by_calls(const CallGraph& graph) override {
    return optimizing::order_by_calls(graph);
  }

  std::string description() const override {
    const HostTarget host = host_target(Tuning{});
    std::string text = "LLVM " LLVM_VERSION_STRING ", " + host.cpu;
    for (const char* feature : {"avx512f", "avx2"}) {
      if (host.features.find(std::string("+") + feature) != std::string::npos) {
        text += std::string(", ") + feature;
        break;
      }
    }
    return text + ", vectors of " + std::to_string(host.vector_bits) + " bits";
  }

  std::vector<std::string> files() const override {
    std::vector<std::string> files;
    for (const void* own : {reinterpret_cast<const void*>(&hindsight_create_optimizer),
                            reinterpret_cast<const void*>(&llvm::sys::getProcessTriple)}) {
      Dl_info info{};
      if (dladdr(own, &info) != 0 && info.dli_fname != nullptr) files.emplace_back(info.dli_fname);
    }
    return files;
  }

 private:
  TargetMachines machines_;
};

}  // namespace
}  // namespace hindsight::jit::optimizing

extern "C" __attribute__((visibility("default"))) hindsight::jit::Optimizer* hindsight_create_optimizer() {
  if (!hindsight::jit::optimizing::initialize_llvm()) return nullptr;
  return new hindsight::jit::optimizing::LlvmOptimizer();
}
