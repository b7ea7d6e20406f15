// Broken modules. No mutation may crash the decoder (run under the address sanitizer too), and every refusal
// has an offset inside the module. What is accepted must be accepted by another implementation too.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wabt/binary-reader-ir.h>
#include <wabt/binary-reader.h>
#include <wabt/error.h>
#include <wabt/feature.h>
#include <wabt/ir.h>
#include <wabt/validator.h>

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/module.h"
#include "tests/jit/wasm/sample_modules.h"
#include "tests/jit/wasm/typed_modules.h"

namespace hindsight::wasm {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<testing::SampleModule> seeds() {
  auto out = testing::bundled_modules(HINDSIGHT_SAMPLES, 6);
  auto text = assemble_text(testing::kEverythingText, "everything");
  EXPECT_TRUE(text.has_value()) << text.error().describe();
  if (text) out.insert(out.begin(), {"everything", *text});
  return out;
}

// One to four small changes: flipped bits, replaced, inserted, removed and copied bytes. `window` keeps them
// inside the first bytes of large modules from being lost in data segments.
Bytes mutate(const Bytes& original, std::mt19937_64& random) {
  Bytes bytes = original;
  auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr uint8_t kInteresting[] = {0x00, 0x01, 0x02, 0x0b, 0x0e, 0x40, 0x41, 0x5f, 0x60, 0x6f, 0x70,
                                      0x7b, 0x7f, 0x80, 0xd0, 0xd2, 0xfc, 0xfd, 0xff, 0x05, 0x1c, 0x11};
  const size_t changes = 1 + below(4);
  for (size_t i = 0; i < changes && bytes.size() > 8; ++i) {
    const size_t at = below(16) == 0 ? below(bytes.size()) : 8 + below(bytes.size() - 8);
    const auto it = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(6)) {
      case 0:
        bytes[at] ^= static_cast<uint8_t>(1u << below(8));
        break;
      case 1:
        bytes[at] = static_cast<uint8_t>(random());
        break;
      case 2:
        bytes[at] = kInteresting[below(sizeof(kInteresting))];
        break;
      case 3:
        bytes.insert(it, kInteresting[below(sizeof(kInteresting))]);
        break;
      case 4:
        bytes.erase(it);
        break;
      default:
        bytes[at] = bytes[below(bytes.size())];
        break;
    }
  }
  return bytes;
}

void walk(const Module& module) {
  for (const FunctionBody& body : module.bodies) {
    InstrReader reader(module, body);
    Instr instr;
    while (!reader.at_end()) reader.next(instr);
    ASSERT_EQ(reader.position(), body.end);
  }
}

TEST(Mutation, NoMutantOfAValidModuleCrashesTheDecoder) {
  const auto originals = seeds();
  ASSERT_FALSE(originals.empty());
  std::mt19937_64 random(20250101);
  int accepted = 0;
  int refused = 0;
  constexpr int kMutants = 20'000;
  for (int i = 0; i < kMutants; ++i) {
    // The small module gets most of them: its mutants reach every kind of instruction.
    const size_t pick = random() % 4 != 0 ? 0 : random() % originals.size();
    const Bytes bytes = mutate(originals[pick].bytes, random);
    const auto module = decode_module(bytes, "mutant");
    if (module.has_value()) {
      ++accepted;
      walk(**module);
      continue;
    }
    ++refused;
    ASSERT_TRUE(module.error().kind == ErrorKind::kBadModule ||
                module.error().kind == ErrorKind::kUnsupported);
    ASSERT_TRUE(module.error().offset.has_value());
    ASSERT_LE(*module.error().offset, bytes.size());
    ASSERT_FALSE(module.error().message.empty());
  }
  EXPECT_GT(accepted, kMutants / 50) << "mutants that are all refused early test little";
  EXPECT_GT(refused, kMutants / 50);
}

TEST(Mutation, NoMutantOfAModuleWithTypedReferencesCrashesTheDecoder) {
  std::vector<Bytes> originals;
  for (const std::string_view wat : testing::kValidTypedModules) {
    auto bytes = assemble_text(wat, "m");
    ASSERT_TRUE(bytes) << bytes.error().describe();
    originals.push_back(std::move(*bytes));
  }
  std::mt19937_64 random(20250102);
  int accepted = 0;
  constexpr int kMutants = 50'000;
  for (int i = 0; i < kMutants; ++i) {
    const Bytes bytes = mutate(originals[random() % originals.size()], random);
    const auto module = decode_module(bytes, "mutant");
    if (!module) continue;
    ++accepted;
    walk(**module);
  }
  EXPECT_GT(accepted, kMutants / 100);  // most bytes of such small modules are structure
}

TEST(Mutation, EveryPrefixOfABundledModuleIsRefusedWithoutACrash) {
  for (const auto& sample : seeds()) {
    const size_t stride = 1 + sample.bytes.size() / 2'000;
    for (size_t length = 0; length < sample.bytes.size(); length += stride)
      (void)decode_module(std::span(sample.bytes).first(length), sample.name);
    EXPECT_TRUE(decode_module(sample.bytes, sample.name).has_value()) << sample.name;
  }
}

// ---- another implementation as the oracle --------------------------------------------------------------

enum Verdict : uint8_t { kUnknown = 0, kAccepts, kRefuses };

Verdict wabt_verdict(const Bytes& bytes, std::string* message, bool strict_custom_sections = false) {
  wabt::Features features;
  features.enable_extended_const();
  features.enable_tail_call();
  features.enable_multi_memory();
  features.enable_memory64();
  features.enable_threads();
  features.enable_relaxed_simd();
  features.enable_exceptions();
  wabt::Errors errors;
  wabt::Module module;
  // The name section is decoded only where a custom section may be at fault. By the specification, errors in
  // it are not errors of the module.
  const wabt::ReadBinaryOptions options(features, nullptr, false, true, strict_custom_sections);
  const bool ok =
      wabt::Succeeded(wabt::ReadBinaryIr("", bytes.data(), bytes.size(), options, &errors, &module)) &&
      wabt::Succeeded(wabt::ValidateModule(&module, &errors, wabt::ValidateOptions(features)));
  if (message != nullptr && !errors.empty()) *message = errors.front().message;
  return ok ? kAccepts : kRefuses;
}

// wabt's verdicts on `mutants`. It may abort, so that it runs in child processes. The mutant that killed one
// stays unknown and the next child goes on after it.
std::vector<Verdict> oracle(const std::vector<Bytes>& mutants) {
  void* shared = mmap(nullptr, mutants.size() + sizeof(uint64_t), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* next = static_cast<volatile uint64_t*>(shared);
  auto* verdicts = static_cast<volatile uint8_t*>(shared) + sizeof(uint64_t);
  while (*next < mutants.size()) {
    const pid_t pid = fork();
    if (pid == 0) {
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, STDERR_FILENO);
      alarm(60);
      while (*next < mutants.size()) {
        const uint64_t i = *next;
        *next = i + 1;  // before the work: a mutant that kills this process is not tried again
        verdicts[i] = wabt_verdict(mutants[i], nullptr);
      }
      _exit(0);
    }
    if (pid < 0 || waitpid(pid, nullptr, 0) != pid) break;
  }
  std::vector<Verdict> out;
  for (size_t i = 0; i < mutants.size(); ++i) out.push_back(static_cast<Verdict>(verdicts[i]));
  munmap(shared, mutants.size() + sizeof(uint64_t));
  return out;
}

// Why wabt 1.0.32 accepts what we refuse, where that is known and right. Null for anything else, and for
// every module that we alone would accept.
const char* known_disagreement(const Bytes& bytes, const Error& error) {
  auto has = [&](const char* part) { return error.message.find(part) != std::string::npos; };
  // Ours are stated in limits.h; wabt has none.
  if (has("implementation limit")) return "limits";
  // The specification wants a name in front, and wants it well-formed; wabt can be told to look.
  if (wabt_verdict(bytes, nullptr, true) == kRefuses) return "name of a custom section";
  // It closes blocks that are open at the end of a body, so that an `end` too few goes unnoticed.
  if (has("unexpected end of section or function (in function")) return "missing end";
  // It takes a prefixed opcode that it does not know for an element expression.
  if (has("constant expression required, found opcode 0xf")) return "element expression";
  // The specification: the table of call_indirect has type funcref.
  if (has("expected a table of funcref")) return "call_indirect through a table of externref";
  // It reads the kind as independent bits, and value types as LEB128 numbers.
  if (has("malformed data segment kind")) return "data segment kind";
  if (has("malformed value type")) return "value type of several bytes";
  return nullptr;
}

// What wabt 1.0.32 does not know yet.
bool is_newer(const Module& module) {
  const auto typed = [](ValType type) { return is_typed_ref(type) || is_non_null(type) || is_exn_ref(type); };
  for (const FuncType& type : module.types)
    if (std::ranges::any_of(type.params, typed) || std::ranges::any_of(type.results, typed)) return true;
  for (const Global& global : module.globals)
    if (typed(global.type.type)) return true;
  for (const TableType& table : module.tables)
    if (typed(table.element)) return true;
  for (const ElementSegment& segment : module.elements)
    if (is_typed_ref(segment.type) || is_exn_ref(segment.type)) return true;  // indices are never null
  for (const FunctionBody& body : module.bodies) {
    if (std::ranges::any_of(body.locals, typed)) return true;
    InstrReader reader(module, body);
    Instr instr;
    while (!reader.at_end()) {
      reader.next(instr);
      if (instr.opcode == Opcode::kTryTable || instr.opcode == Opcode::kThrowRef) return true;
      if (instr.opcode == Opcode::kCallRef || instr.opcode == Opcode::kReturnCallRef ||
          (instr.opcode >= Opcode::kRefAsNonNull && instr.opcode <= Opcode::kBrOnNonNull))
        return true;
      if ((instr.block.single_result && typed(*instr.block.single_result)) || typed(instr.ref_type))
        return true;
    }
  }
  return !module.table_inits.empty();
}

TEST(Mutation, AgreesWithAnotherImplementationOnWhatIsValid) {
  const auto originals = seeds();
  ASSERT_FALSE(originals.empty());
  std::mt19937_64 random(7);
  std::vector<Bytes> mutants;
  constexpr int kMutants = 6'000;
  for (int i = 0; i < kMutants; ++i) {
    const size_t pick = random() % 16 != 0 ? 0 : random() % originals.size();
    mutants.push_back(mutate(originals[pick].bytes, random));
  }
  const auto verdicts = oracle(mutants);
  int compared = 0;
  int both_accept = 0;
  std::map<std::string, int> excused;
  int disagreements = 0;
  for (size_t i = 0; i < mutants.size(); ++i) {
    if (verdicts[i] == kUnknown) {
      ++excused["wabt ended its process"];
      continue;
    }
    const auto module = decode_module(mutants[i], "mutant");
    ++compared;
    const bool ours = module.has_value();
    const bool theirs = verdicts[i] == kAccepts;
    if (ours && theirs) ++both_accept;
    if (ours == theirs) continue;
    const char* reason = !ours                ? known_disagreement(mutants[i], module.error())
                         : is_newer(**module) ? "try_table, throw_ref, exnref or typed function references"
                                              : nullptr;
    if (reason != nullptr) {
      ++excused[reason];
      continue;
    }
    if (++disagreements <= 20) {
      std::string message;
      if (ours) wabt_verdict(mutants[i], &message);
      ADD_FAILURE() << "mutant " << i << ": ours " << (ours ? "accepts" : module.error().describe())
                    << ", wabt " << (theirs ? "accepts" : "refuses: " + message);
    }
  }
  EXPECT_EQ(disagreements, 0);
  EXPECT_GT(compared, kMutants * 9 / 10);
  EXPECT_GT(both_accept, kMutants / 50);
  for (const auto& [reason, count] : excused) RecordProperty(reason, count);
}

}  // namespace
}  // namespace hindsight::wasm
