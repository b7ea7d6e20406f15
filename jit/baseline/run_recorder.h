// RunRecorder: cuts a function that is being compiled with CompileOptions::trace into runs and describes what
// each computes (base/trace.h says how and for whom). It follows the compiler's instructions with an operand
// stack of its own, on which stands, instead of where a value is, what it waits for.
//
// Every step is O(1) amortized. An operand is written to its slot at the end of the run that pushed it, and
// never looked at again while it stays there.
#pragma once

#include <memory>
#include <vector>

#include "base/trace.h"
#include "jit/wasm/instr_reader.h"
#include "jit/wasm/module.h"

namespace hindsight::jit::baseline {

class RunRecorder {
 public:
  RunRecorder(const wasm::Module& module, FuncIndex function, TraceDirectory& directory);

  // The function's entry: its own id, to be reported first.
  uint32_t enter();
  // A landing for exceptions: its own id, to be reported first.
  uint32_t land();
  // The compiler is about to compile `instr`.
  void instruction(const wasm::Instr& instr);
  // As many operands are on the compiler's stack. At labels that is news.
  void sync(size_t height);
  // The access that was recorded last, or both of an instruction that reads and writes, is done by the
  // instruction at `code`.
  void access_at(CodeOffset code);
  // The run in progress is better ended: it has kTraceMaxAccesses accesses.
  bool full() const { return run_.accesses.size() >= kTraceMaxAccesses; }

  struct Moved {  // operands that a jump delivers: `arity` from the top, to the operand slots from `to_base`
                  // on
    uint32_t arity = 0;
    uint32_t to_base = 0;
  };
  // Is there anything to report if the run ends by falling through?
  bool empty() const;
  // Ends the run and begins the next; returns the id to be reported.
  uint32_t end_run(TraceEnd end, uint32_t instructions, WasmOffset offset, CodeOffset code, Moved moved);
  // Where the run ended last goes on.
  TraceRun& last_run() { return function_->runs.back().second; }
  // What follows cannot be reached from here: forgets the run in progress.
  void drop_run();

  // To be published when the code is in its place.
  std::unique_ptr<TraceFunction> finish();

 private:
  // What a value waits for. A handful of terms; of more, the ones that matter least are forgotten.
  struct Value {
    static constexpr uint32_t kMost = 6;
    uint8_t count = 0;
    TraceTerm terms[kMost];
    void add(TraceTerm term);
    void add(const Value& other, uint32_t delay);
  };
  Value slot_value(uint32_t slot) const;
  Value pop();
  void push(const Value& value) { stack_.push_back(value); }
  const Value& local(uint32_t index);
  void set_local(uint32_t index, const Value& value);
  uint32_t mark(TraceEnd end);
  void compute(uint32_t operands, uint32_t results, uint32_t latency);
  void vector(const wasm::Instr& instr);
  void access(TraceAccessKind kind, uint32_t bytes, const Value& address, const Value& value,
              WasmOffset offset);
  void atomic(const wasm::Instr& instr);
  TraceSpan span_of(const Value& value);
  void write(uint32_t slot, const Value& value);
  void reset_run();
  uint32_t operand_slot(size_t index) const { return locals_ + static_cast<uint32_t>(index); }

  const wasm::Module& module_;
  TraceDirectory& directory_;
  const wasm::FuncType& type_;
  const uint32_t locals_;
  std::unique_ptr<TraceFunction> function_;
  TraceRun run_;
  uint32_t operations_ = 0;  // since the last access
  Value condition_;
  uint32_t call_params_ = 0, call_results_ = 0;
  std::vector<Value> stack_;
  size_t clean_ = 0;  // operands below are in their own slots
  struct LocalState {
    uint32_t run = 0;  // the value below was set in this run (counted from 1)
    Value value;
  };
  std::vector<LocalState> local_state_;
  std::vector<uint32_t> dirty_;  // locals set in this run
  uint32_t run_number_ = 1;
};

}  // namespace hindsight::jit::baseline
