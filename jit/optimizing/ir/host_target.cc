#include "jit/optimizing/ir/host_target.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace hindsight::jit::optimizing {
namespace {

constexpr unsigned kLoopAlignment = 64;
// Not 512 where the host has them. Measured on a Xeon, in two rounds of suites vector and simd: heat and fir took 0.8
// to 0.9 of the time. Workloads life and grayscale took 1.1 to 1.4 times as long.
constexpr uint32_t kPreferredVectorBits = 256;

std::string host_features() {
  std::vector<std::string> names;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    names.push_back(std::string(1, feature.second ? '+' : '-').append(feature.first().str()));
  // Invariant: the same request gives the same bytes; the map's own order is not promised.
  std::sort(names.begin(), names.end());
  std::string joined;
  for (const std::string& name : names) {
    if (!joined.empty()) joined.push_back(',');
    joined.append(name);
  }
  return joined;
}

}  // namespace

HostTarget host_target(const Tuning& tuning) {
  static const std::string triple = llvm::sys::getProcessTriple();
  static const std::string cpu = llvm::sys::getHostCPUName().str();
  static const std::string features = host_features();
  HostTarget target{.triple = triple, .cpu = "x86-64-v2", .features = "", .vector_bits = 0};
  if (tuning.use_host_features) {
    target.cpu = cpu;
    target.features = features;
    target.vector_bits = kPreferredVectorBits;
    // For measuring; not a public switch.
    if (const char* bits = std::getenv("HINDSIGHT_VECTOR_BITS"))
      target.vector_bits = static_cast<uint32_t>(std::strtoul(bits, nullptr, 10));
  }
  return target;
}

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const HostTarget& host, const Tuning& tuning,
                                                                 bool split_cold) {
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(host.triple, message);
  if (!target) return make_error(ErrorKind::kUnsupported, "no LLVM target: " + message, host.triple);
  llvm::TargetOptions options;
  // WebAssembly forbids contraction; the default would fuse only explicit requests, but say so.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // A call that does not return is followed by ud2, so that its return address is inside its own function.
  options.TrapUnreachable = true;
  options.NoTrapAfterNoreturn = false;
  options.EnableMachineFunctionSplitter = split_cold;
  if (tuning.align_loops) options.LoopAlignment = kLoopAlignment;
  const auto level = tuning.optimization_level == 0   ? llvm::CodeGenOptLevel::None
                     : tuning.optimization_level == 1 ? llvm::CodeGenOptLevel::Less
                     : tuning.optimization_level == 2 ? llvm::CodeGenOptLevel::Default
                                                      : llvm::CodeGenOptLevel::Aggressive;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(host.triple, host.cpu, host.features, options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, level, /*JIT=*/true));
  if (!machine) return make_error(ErrorKind::kUnsupported, "LLVM cannot target " + host.cpu, host.triple);
  return machine;
}

}  // namespace hindsight::jit::optimizing
