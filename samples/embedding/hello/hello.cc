// A host in one page. It loads a module, gives it a host function, calls a typed export, catches a trap, and
// reads what feedback did meanwhile.
#include <cstdint>
#include <cstdio>
#include <string>

#include "hindsight/hindsight.h"

namespace {

int fail(const char* what, const hindsight::Error& error) {
  std::fprintf(stderr, "%s: %s\n", what, error.describe().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: hello hello.wat\n");
    return 2;
  }
  auto engine = hindsight::Engine::create({});
  if (!engine) return fail("engine", engine.error());
  auto module = (*engine)->load_file(argv[1]);
  if (!module) return fail("load", module.error());

  // Any callable with WebAssembly's types can be imported.
  uint64_t calls = 0;
  hindsight::Linker linker(**engine);
  linker.define_function("host", "weight", [&calls](int32_t item) -> int32_t {
    ++calls;
    return item * 3;
  });
  auto instance = linker.instantiate(*module);
  if (!instance) return fail("instantiate", instance.error());

  // A typed export is checked once, when it is looked up.
  auto total = (*instance)->typed_function<int64_t(int32_t)>("total");
  if (!total) return fail("total", total.error());
  const hindsight::Result<int64_t> sum = (*total)(1000);
  if (!sum) return fail("total", sum.error());
  std::printf("total(1000) = %lld after %llu host calls\n", static_cast<long long>(*sum),
              static_cast<unsigned long long>(calls));

  // A trap is an error like any other; the instance stays usable and knows where it happened.
  auto divide = (*instance)->typed_function<int32_t(int32_t, int32_t)>("divide");
  if (!divide) return fail("divide", divide.error());
  const hindsight::Result<int32_t> quotient = (*divide)(1, 0);
  if (quotient || quotient.error().kind != hindsight::ErrorKind::kTrap ||
      (*instance)->last_trap() == nullptr) {
    std::fprintf(stderr, "divide(1, 0) should have trapped\n");
    return 1;
  }
  std::printf("divide(1, 0) trapped: %s\n", (*instance)->last_trap()->name.c_str());
  for (const hindsight::Frame& frame : (*instance)->last_trap()->backtrace) {
    std::printf("  in %s\n", frame.function.c_str());
  }
  const hindsight::Result<int32_t> again = (*divide)(42, 6);
  if (!again) return fail("divide", again.error());
  std::printf("divide(42, 6) = %d\n", *again);

  // Something worth optimizing.
  auto spin = (*instance)->typed_function<int64_t(int64_t)>("spin");
  if (!spin) return fail("spin", spin.error());
  const hindsight::Result<int64_t> spun = (*spin)(200'000'000);
  if (!spun) return fail("spin", spun.error());
  std::printf("spin(200000000) = %lld\n", static_cast<long long>(*spun));

  const hindsight::FeedbackReport report = (*engine)->feedback_report();
  std::fprintf(stderr, "unit %s, %llu samples, %llu functions optimized, %zu decisions\n",
               report.unit.c_str(), static_cast<unsigned long long>(report.counts.samples),
               static_cast<unsigned long long>(report.functions_optimized), report.decisions.size());
  for (const hindsight::DecisionReport& decision : report.decisions) {
    std::fprintf(stderr, "  %s %s: %s (%s)\n", decision.kind.c_str(), decision.function.c_str(),
                 hindsight::to_string(decision.state), decision.reason.c_str());
  }
  std::printf("done\n");
  return 0;
}
