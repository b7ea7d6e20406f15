// One compilation from request to code version; the shared object's only export.
#include "jit/optimizing/optimizer.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

#include "jit/optimizing/function_generator.h"
#include "jit/optimizing/guard_llvm.h"
#include "jit/optimizing/link_code.h"
#include "jit/optimizing/pc_rows.h"
#include "jit/optimizing/pipeline.h"
#include "jit/optimizing/prefetch_pass.h"
#include "jit/optimizing/protect.h"

namespace hindsight::jit::optimizing {
namespace {

constexpr const char* kEntryName = "function";

std::string osr_name(LoopIndex loop) {
  return "osr" + std::to_string(loop.value);
}

// What LLVM has to say instead of printing it.
struct Diagnostics {
  std::string error;
  uint64_t largest_frame = 0;  // of frames larger than their function's stack check assumed
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
#ifndef NDEBUG
  std::string broken;
  llvm::raw_string_ostream text(broken);
  if (llvm::verifyFunction(function, &text)) {
    function.print(text);
    return make_error(ErrorKind::kInternal, "generated IR is broken: " + broken);
  }
#else
  (void)function;
#endif
  return {};
}

// Generates the function and its OSR entries.
Status generate(IrModule& ir, uint32_t least_frame_bytes) {
  const OptimizeRequest& request = ir.request;
  const wasm::FuncType& type = ir.wasm.type_of(request.function);
  const auto finish = [&](llvm::Function& function, const FunctionGenerator& generator) -> Status {
    function.addFnAttr("warn-stack-size", std::to_string(generator.frame_bytes_estimate()));
    protect_semantics(ir, function, generator);
    return {};
  };
  llvm::Function* const whole = ir.make_function(ir.native_type(type), kEntryName, request.function);
  FunctionGenerator generator(ir, request.function, whole, whole);
  generator.set_least_frame_bytes(least_frame_bytes);
  generator.generate();
  HINDSIGHT_TRY(finish(*whole, generator));
  llvm::FunctionType* const osr_type =
      llvm::FunctionType::get(ir.native_result(type), {ir.ptr, ir.ptr}, false);
  for (const OsrPoint& point : generator.osr_points()) {
    llvm::Function* const osr = ir.make_function(osr_type, osr_name(point.loop), request.function);
    FunctionGenerator remainder(ir, request.function, osr, whole);
    remainder.set_least_frame_bytes(least_frame_bytes);
    remainder.generate_from(point);
    HINDSIGHT_TRY(finish(*osr, remainder));
  }
  ir.finish_debug_info();
  for (llvm::Function& function : ir.module)
    if (!function.isDeclaration()) HINDSIGHT_TRY(verify(function));
  return {};
}

struct Attempt {
  OptimizeResult result;
  uint64_t largest_frame = 0;
};

Status attempt(const OptimizeRequest& request, CodeArena& arena, const HostTarget& host,
               uint32_t least_frame_bytes, Attempt& out) {
  double mark = thread_seconds();
  std::vector<PassTime> times;
  const auto lap = [&](const char* name) {
    const double now = thread_seconds();
    times.push_back({name, now - mark});
    mark = now;
  };
  HINDSIGHT_ASSIGN(std::unique_ptr<llvm::TargetMachine> machine, make_target_machine(host, request.tuning));
  llvm::LLVMContext context;
  Diagnostics diagnostics;
  context.setDiagnosticHandlerCallBack(on_diagnostic, &diagnostics);
  IrModule ir(context, request, host);
  ir.module.setDataLayout(machine->createDataLayout());
  ir.module.setTargetTriple(host.triple);
  lap("set up");
  HINDSIGHT_TRY(generate(ir, least_frame_bytes));
  lap("generate IR");
  PrefetchPlan prefetches(ir);
  HINDSIGHT_ASSIGN(EmittedObject object, optimize_and_emit(ir, *machine, prefetches, times));
  if (!diagnostics.error.empty()) return make_error(ErrorKind::kInternal, "LLVM: " + diagnostics.error);
  out.largest_frame = diagnostics.largest_frame;
  if (diagnostics.largest_frame > least_frame_bytes && diagnostics.largest_frame > 0) return {};
  mark = thread_seconds();
  HINDSIGHT_ASSIGN(LinkedCode code, link_code(object.bytes, arena));
  lap("link");

  auto version = std::make_unique<CodeVersion>();
  HINDSIGHT_TRY(add_pc_rows(object.bytes, code, version->pc_map));
  lap("pc map");
  version->function = request.function;
  version->tier = Tier::kOptimized;
  version->code_size = CodeOffset(code.code_bytes);
  const auto symbol = [&](const std::string& name) -> const void* {
    const auto found = code.symbols.find(name);
    return found == code.symbols.end() ? nullptr : found->second;
  };
  version->entry = symbol(kEntryName);
  if (!version->entry) return make_error(ErrorKind::kInternal, "linked code has no entry");
  for (LoopIndex loop : request.osr_loops)
    if (const void* entry = symbol(osr_name(loop))) version->osr_entries.push_back({loop, entry});
  for (const InlineSite& site : ir.inline_sites) version->pc_map.add_inline_site(site);
  for (uint32_t function : ir.inlined) version->inlined.push_back(FuncIndex(function));
  version->loop_cells = std::move(prefetches.cells);
  version->prefetch_sites = std::move(prefetches.sites);
  version->memory = std::move(code.memory);
  version->pass_times = std::move(times);
  out.result.version = std::move(version);
  out.result.dump = std::move(object.dump);
  return {};
}

class LlvmOptimizer : public Optimizer {
 public:
  Result<OptimizeResult> compile(const OptimizeRequest& request, CodeArena& arena) override {
    if (!request.module || request.function.value >= request.module->function_count() ||
        request.module->is_imported(request.function))
      return make_error(ErrorKind::kUsage, "only functions defined in the module can be compiled",
                        "function " + std::to_string(request.function.value));
    const double begin = thread_seconds();
    const HostTarget host = host_target(request.tuning);
    Attempt last;
    // The stack check at entry assumes a frame size that only code generation knows. The first estimate is
    // nearly always enough; else the second attempt has the exact number (and a margin: a larger constant in
    // the check does not change the frame).
    uint32_t frame_bytes = 0;
    for (int round = 0; round < 3 && !last.result.version; ++round) {
      const Status status =
          guarded_by_llvm_wall([&] { return attempt(request, arena, host, frame_bytes, last); });
      if (!status) return std::unexpected(status.error());
      frame_bytes = static_cast<uint32_t>(std::min<uint64_t>(last.largest_frame + 256, 1u << 30));
    }
    if (!last.result.version)
      return make_error(ErrorKind::kInternal, "the frame size of the generated code does not settle");
    last.result.version->compile_seconds = thread_seconds() - begin;
    return std::move(last.result);
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
};

}  // namespace
}  // namespace hindsight::jit::optimizing

extern "C" __attribute__((visibility("default"))) hindsight::jit::Optimizer* hindsight_create_optimizer() {
  if (!hindsight::jit::optimizing::initialize_llvm()) return nullptr;
  return new hindsight::jit::optimizing::LlvmOptimizer();
}
