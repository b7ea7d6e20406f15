// PassTimer: CPU time of one compilation, pass by pass, those of code generation included. LLVM's own
// -time-passes is a process-wide switch that prints; this one belongs to a compilation and returns values.
//
// A pass that runs others, or an analysis that a pass asks for, is counted apart: times are each one's own
// and add up. Reading the thread's clock costs about a quarter of a microsecond, twice a pass and function.
// That is why nothing is timed unless the request says so.
#pragma once

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/PassInstrumentation.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "jit/code/code_version.h"
#include "jit/optimizing/pass_limits.h"

namespace hindsight::jit::optimizing {

class PassTimer {
 public:
  // How many machine instructions the function has by now; 0: none yet.
  using Between = std::function<void(size_t machine_instructions)>;

  // Both live as long as the passes that run. `wanted` false: does nothing.
  explicit PassTimer(bool wanted) : wanted_(wanted) {}
  PassTimer(const PassTimer&) = delete;
  PassTimer& operator=(const PassTimer&) = delete;

  // Hears of the passes of the pass manager that is built with `callbacks`.
  void listen(llvm::PassInstrumentationCallbacks& callbacks);

  // The same for code generation, whose pass managers tell nobody anything. It hands `passes` each pass that
  // `limits` allow, where it takes long or is timed followed by a mark, which calls `between`. The marks preserve everything
  // and change no code. Keep the result until the passes have run.
  std::unique_ptr<llvm::legacy::PassManagerBase> into(llvm::legacy::PassManager& passes, PassLimits& limits,
                                                      Between between);
  void begin_codegen();

  bool wanted() const { return wanted_; }
  // By descending time.
  std::vector<PassCost> costs() const;

  // For the marks.
  void reached(const std::string& pass);

 private:
  struct Running {
    std::string name;
    double begin = 0;
    double inner = 0;  // of what ran inside
  };
  void enter(llvm::StringRef name);
  void leave();
  void count(const std::string& name, double seconds);

  const bool wanted_;
  std::vector<Running> running_;
  double mark_ = 0;
  std::map<std::string, PassCost> costs_;
};

}  // namespace hindsight::jit::optimizing
