// What places are computed from, as formulas: arithmetic, with names for what a loop carries and for what loads give. They are
// read from the code as it stands, and not from what a pass meant to make. The README of tests/jit/optimizing/shapes says how
// to read them.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jit/optimizing/ir/ir_module.h"

namespace hindsight::jit::optimizing {

class ValueText {
 public:
  // Values are seen from within `loop`; null: from outside of all loops. `loops` are those of the function as it stands.
  ValueText(const IrModule& ir, const llvm::Function& function, const llvm::LoopInfo& loops,
            const llvm::Loop* loop)
      : ir_(ir), vmctx_(function.getArg(0)), loops_(loops), loop_(loop) {}

  // A value that will be asked about. All of them come first, so that what they share gets a name.
  void expect(const llvm::Value& value);
  // "[4*i + 65536]": where a pointer leads, from the beginning of its memory. `bytes`: that are accessed there.
  std::string place(const llvm::Value& pointer, uint64_t bytes);
  // "(a <s b) ? 2*i + 2 : 2*i + 1": what a number is.
  std::string value(const llvm::Value& number) { return of(number).text; }
  // "a: @57 at [4*i + 4*D]": a line for each name that came up since the last call. "@57" is the load at this wasm offset, of which
  // that is a copy.
  std::vector<std::string> take_definitions() { return std::exchange(definitions_, {}); }

 private:
  // How closely its parts are bound together, which says where it needs brackets.
  enum class Binds : uint8_t { kLoosely, kAsSum, kAsProduct, kTightly };
  struct Formula {
    std::string text;
    Binds binds = Binds::kTightly;
  };
  // Values so many times, and a number.
  struct Sum {
    std::vector<std::pair<const llvm::Value*, int64_t>> terms;
    int64_t number = 0;
  };
  // A place, or the memory's first byte where so many bytes from there on are not in memory.
  struct Clamp {
    const llvm::Value* place = nullptr;
    uint64_t bytes = 0;
  };

  Formula of(const llvm::Value& value);
  Formula of_load(const llvm::LoadInst& load);
  Formula of_frame(const llvm::LoadInst& load, const llvm::AllocaInst& kept);
  Formula of_phi(const llvm::PHINode& phi);
  std::string of_carried(const llvm::PHINode& phi, const llvm::Loop& loop);
  std::optional<std::string> run_of(const llvm::Value& value);
  Formula expression(const llvm::Instruction& instruction);
  Formula of_operands(const llvm::Instruction& instruction, const char* sign);
  Formula of_call(const std::string& name, const llvm::Instruction& instruction,
                  std::optional<unsigned> operands = {});
  Formula of_intrinsic(const llvm::CallInst& call);
  std::string operand(const llvm::Value& value, Binds least);

  void add(const llvm::Value& value, int64_t times, Sum& sum);
  void add_parts(const llvm::Instruction& linear, int64_t times, Sum& sum);
  Formula text_of(const Sum& sum, unsigned bits);
  std::string in_memory(Sum sum);
  std::string clamped(const Clamp& clamp, uint64_t bytes);

  std::vector<const llvm::Value*> parts_of(const llvm::Instruction& instruction) const;
  std::vector<const llvm::Value*> stored_here(const llvm::AllocaInst& kept) const;
  std::optional<Clamp> clamp_of(const llvm::Value& value) const;
  std::optional<uint32_t> length_of(const llvm::Value& value) const;
  bool is_around(const llvm::Loop& loop) const;
  bool has_name(const llvm::Instruction& instruction);
  std::string define(const llvm::Value& value, const std::string& text);

  const IrModule& ir_;
  const llvm::Value* const vmctx_;
  const llvm::LoopInfo& loops_;
  const llvm::Loop* const loop_;
  std::map<const llvm::Value*, unsigned> uses_;  // of what is expected
  std::map<const llvm::Value*, std::string> names_;
  std::map<std::string, std::string> name_of_text_;
  std::vector<std::string> definitions_;
  unsigned carried_names_ = 0, value_names_ = 0, shown_ = 0;
};

}  // namespace hindsight::jit::optimizing
