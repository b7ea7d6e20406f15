#include "jit/optimizing/generate/local_liveness.h"

#include "jit/wasm/instr_reader.h"

namespace hindsight::jit::optimizing {
namespace {

using wasm::Opcode;

// The body instructions that matter.
struct Step {
  enum class Kind : uint8_t {
    kRead,
    kWrite,
    kBlock,
    kLoop,
    kIf,
    kElse,
    kEnd,
    kJump,
    kMayJump,
    kTable,
    kLeave
  };
  Kind kind;
  uint32_t index = 0;              // local, depth, or loop
  size_t opener = 0;               // kEnd, kElse: of the block; kNone: the function's
  std::vector<uint32_t> depths{};  // kTable
};
constexpr size_t kNone = ~size_t{0};

std::vector<Step> read_steps(const wasm::Module& module, const wasm::FunctionBody& body) {
  using Kind = Step::Kind;
  std::vector<Step> steps;
  std::vector<size_t> open{kNone};
  uint32_t loop = 0;
  wasm::InstrReader reader(module, body);
  wasm::Instr instr;
  const auto begin = [&](Kind kind, uint32_t index) {
    open.push_back(steps.size());
    steps.push_back({kind, index});
  };
  while (!reader.at_end()) {
    reader.next(instr);
    switch (instr.opcode) {
      case Opcode::kLocalGet:
        steps.push_back({Kind::kRead, instr.index});
        break;
      case Opcode::kLocalSet:
      case Opcode::kLocalTee:
        steps.push_back({Kind::kWrite, instr.index});
        break;
      case Opcode::kBlock:
        begin(Kind::kBlock, 0);
        break;
      case Opcode::kLoop:
        begin(Kind::kLoop, loop++);
        break;
      case Opcode::kIf:
        begin(Kind::kIf, 0);
        break;
      case Opcode::kElse:
        steps.push_back({Kind::kElse, 0, open.back()});
        break;
      case Opcode::kEnd:
        steps.push_back({Kind::kEnd, 0, open.back()});
        open.pop_back();
        break;
      case Opcode::kBr:
        steps.push_back({Kind::kJump, instr.index});
        break;
      case Opcode::kBrIf:
      case Opcode::kBrOnNull:
      case Opcode::kBrOnNonNull:
        steps.push_back({Kind::kMayJump, instr.index});
        break;
      case Opcode::kBrTable:
        steps.push_back({Kind::kTable, 0, kNone, reader.br_table()});
        break;
      case Opcode::kReturn:
      case Opcode::kUnreachable:
      case Opcode::kReturnCall:
      case Opcode::kReturnCallIndirect:
      case Opcode::kReturnCallRef:
      case Opcode::kThrow:
      case Opcode::kThrowRef:
        steps.push_back({Kind::kLeave});
        break;
      default:
        break;
    }
  }
  return steps;
}

class Liveness {
 public:
  Liveness(size_t locals, size_t loops, const std::vector<Step>& steps)
      : steps_(steps), live_(locals), at_loops_(loops, std::vector<bool>(locals)) {}

  // Backwards; a loop's body again until what its header needs no longer grows. False: it takes too long.
  bool run() {
    constexpr size_t kMostWork = 40'000'000;  // steps times locals, about
    size_t work = 0;
    for (size_t i = steps_.size(); i-- > 0;) {
      work += touches_all(steps_[i]) ? live_.size() / 16 + 1 : 1;
      if (work > kMostWork) return false;
      take(steps_[i], i);
    }
    return true;
  }
  std::vector<std::vector<bool>> result() { return std::move(at_loops_); }

 private:
  using Kind = Step::Kind;
  struct Frame {
    Kind kind;
    uint32_t loop;
    size_t end;               // of its `end`
    std::vector<bool> after;  // live after it
    std::vector<bool> other;  // kIf: where the else arm begins, or after it
  };

  static bool touches_all(const Step& step) { return step.kind > Kind::kWrite; }
  static void add(std::vector<bool>& to, const std::vector<bool>& more) {
    for (size_t i = 0; i < to.size(); ++i)
      if (more[i]) to[i] = true;
  }
  const std::vector<bool>& target(uint32_t depth) const {
    const Frame& frame = frames_[frames_.size() - 1 - depth];
    return frame.kind == Kind::kLoop ? at_loops_[frame.loop] : frame.after;
  }

  void take(const Step& step, size_t& at) {
    switch (step.kind) {
      case Kind::kRead:
        live_[step.index] = true;
        return;
      case Kind::kWrite:
        live_[step.index] = false;
        return;
      case Kind::kEnd: {
        const Step* const opener = step.opener == kNone ? nullptr : &steps_[step.opener];
        if (!opener) live_.assign(live_.size(), false);
        frames_.push_back(
            {opener ? opener->kind : Kind::kBlock, opener ? opener->index : 0, at, live_, live_});
        return;
      }
      case Kind::kElse:
        frames_.back().other = live_;
        live_ = frames_.back().after;
        return;
      case Kind::kIf:
        add(live_, frames_.back().other);
        frames_.pop_back();
        return;
      case Kind::kBlock:
        frames_.pop_back();
        return;
      case Kind::kLoop: {
        std::vector<bool>& known = at_loops_[step.index];
        if (known != live_) {
          add(known, live_);
          live_ = frames_.back().after;
          at = frames_.back().end;  // the step before it is next
          return;
        }
        frames_.pop_back();
        return;
      }
      case Kind::kJump:
        live_ = target(step.index);
        return;
      case Kind::kMayJump:
        add(live_, target(step.index));
        return;
      case Kind::kTable:
        live_.assign(live_.size(), false);
        for (const uint32_t depth : step.depths) add(live_, target(depth));
        return;
      case Kind::kLeave:
        live_.assign(live_.size(), false);
        return;
    }
  }

  const std::vector<Step>& steps_;
  std::vector<bool> live_;
  std::vector<Frame> frames_;  // outermost first
  std::vector<std::vector<bool>> at_loops_;
};

}  // namespace

std::vector<std::vector<bool>> locals_live_at_loops(const wasm::Module& module,
                                                    const wasm::FunctionBody& body) {
  const std::vector<Step> steps = read_steps(module, body);
  Liveness liveness(body.locals.size(), body.loops.size(), steps);
  if (liveness.run()) return liveness.result();
  return std::vector(body.loops.size(), std::vector<bool>(body.locals.size(), true));
}

}  // namespace hindsight::jit::optimizing
