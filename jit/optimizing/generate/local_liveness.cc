#include "jit/optimizing/generate/local_liveness.h"

#include "jit/abi/nest_exits.h"
#include "jit/wasm/instr_reader.h"

namespace hindsight::jit::optimizing {
namespace {

using wasm::Opcode;

constexpr uint32_t kNone = ~uint32_t{0};

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
  uint32_t index = 0;       // local, depth, loop, or table
  uint32_t opener = kNone;  // kEnd, kElse: of the block; kNone: the function's
};

// What is asked about: locals by number, densely.
struct Asked {
  std::vector<uint32_t> number;  // by local; kNone: nobody asks
  size_t count = 0;
};

struct LivenessSteps {
  std::vector<Step> steps;
  std::vector<std::vector<uint32_t>> tables;  // depths
};

// From `begin` on, which is the body's beginning or a loop, with `around` blocks around it besides the function's.
LivenessSteps read_steps(const wasm::Module& module, const wasm::FunctionBody& body, const Asked& asked,
                         WasmOffset at, uint32_t loop, size_t around) {
  using Kind = Step::Kind;
  LivenessSteps all;
  std::vector<Step>& steps = all.steps;
  std::vector<uint32_t> open{kNone};
  wasm::InstrReader reader(module, body);
  wasm::Instr instr;
  const auto begin = [&](Kind kind, uint32_t index) {
    open.push_back(static_cast<uint32_t>(steps.size()));
    steps.push_back({kind, index});
  };
  for (size_t i = 0; i < around; ++i) begin(Kind::kBlock, 0);
  reader.seek(at);
  while (!reader.at_end()) {
    reader.next(instr);
    switch (instr.opcode) {
      case Opcode::kLocalGet:
      case Opcode::kLocalSet:
      case Opcode::kLocalTee:
        if (const uint32_t number = asked.number[instr.index]; number != kNone)
          steps.push_back({instr.opcode == Opcode::kLocalGet ? Kind::kRead : Kind::kWrite, number});
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
        steps.push_back({Kind::kTable, static_cast<uint32_t>(all.tables.size())});
        all.tables.push_back(reader.br_table());
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
  return all;
}

class Liveness {
 public:
  Liveness(size_t locals, size_t loops, const LivenessSteps& steps)
      : steps_(steps.steps), tables_(steps.tables), live_(locals), at_loops_(loops) {}

  // Notes what is live around this loop, at each level up to `levels`.
  void watch(uint32_t loop, size_t levels) {
    watched_ = loop;
    around_.resize(levels + 1);
  }
  // Backwards; a loop's body again until what its header needs no longer grows. False: it takes too long, in steps times locals, about.
  bool run(size_t most_work) {
    size_t work = 0;
    for (size_t i = steps_.size(); i-- > 0;) {
      work += touches_all(steps_[i]) ? live_.size() / 16 + 1 : 1;
      if (work > most_work) return false;
      take(steps_[i], i);
    }
    return true;
  }
  std::vector<std::vector<bool>> at_loops() { return std::move(at_loops_); }
  const std::vector<bool>& at_loop(uint32_t loop) const { return at_loops_[loop]; }
  const std::vector<std::vector<bool>>& around() const { return around_; }

 private:
  using Kind = Step::Kind;
  struct Frame {
    Kind kind = Kind::kBlock;
    uint32_t loop = 0;
    size_t end = 0;           // of its `end`
    std::vector<bool> after;  // live after it
    std::vector<bool> other;  // kIf: where the else arm begins, or after it
  };

  static bool touches_all(const Step& step) { return step.kind > Kind::kWrite; }
  static void add(std::vector<bool>& to, const std::vector<bool>& more) {
    for (size_t i = 0; i < to.size(); ++i)
      if (more[i]) to[i] = true;
  }
  const std::vector<bool>& target(uint32_t depth) const {
    const Frame& frame = frames_[depth_ - 1 - depth];
    return frame.kind == Kind::kLoop ? at_loops_[frame.loop] : frame.after;
  }

  Frame& top() { return frames_[depth_ - 1]; }
  void push(Kind kind, uint32_t loop, size_t end) {
    if (depth_ == frames_.size()) frames_.emplace_back();
    Frame& frame = frames_[depth_++];
    frame.kind = kind;
    frame.loop = loop;
    frame.end = end;
    frame.after = live_;
    frame.other = live_;
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
        if (opener && opener->kind == Kind::kLoop) at_loops_[opener->index].resize(live_.size());
        push(opener ? opener->kind : Kind::kBlock, opener ? opener->index : 0, at);
        return;
      }
      case Kind::kElse:
        top().other = live_;
        live_ = top().after;
        return;
      case Kind::kIf:
        add(live_, top().other);
        --depth_;
        return;
      case Kind::kBlock:
        --depth_;
        return;
      case Kind::kLoop: {
        std::vector<bool>& known = at_loops_[step.index];
        if (known != live_) {
          add(known, live_);
          live_ = top().after;
          at = top().end;  // the step before it is next
          return;
        }
        // Once more for each time that a loop around it is taken; the last time nothing grows.
        if (step.index == watched_) {
          around_[0] = top().after;
          for (uint32_t level = 1; level < around_.size(); ++level) around_[level] = target(level);
        }
        --depth_;
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
        for (const uint32_t depth : tables_[step.index]) add(live_, target(depth));
        return;
      case Kind::kLeave:
        live_.assign(live_.size(), false);
        return;
    }
  }

  const std::vector<Step>& steps_;
  const std::vector<std::vector<uint32_t>>& tables_;
  std::vector<bool> live_;
  std::vector<Frame> frames_;                // outermost first
  size_t depth_ = 0;                         // so many of them are open; the others are kept for their memory
  std::vector<std::vector<bool>> at_loops_;  // empty: not come to yet
  uint32_t watched_ = kNone;
  std::vector<std::vector<bool>> around_;  // the watched loop, by level
};

}  // namespace

std::vector<std::vector<bool>> locals_live_at_loops(const wasm::Module& module,
                                                    const wasm::FunctionBody& body) {
  constexpr size_t kMostWork = 40'000'000;
  Asked asked;
  for (; asked.count < body.locals.size(); ++asked.count)
    asked.number.push_back(static_cast<uint32_t>(asked.count));
  const LivenessSteps steps = read_steps(module, body, asked, body.begin, 0, 0);
  Liveness liveness(asked.count, body.loops.size(), steps);
  if (liveness.run(kMostWork)) return liveness.at_loops();
  return std::vector(body.loops.size(), std::vector<bool>(asked.count, true));
}

LiveAround locals_live_around(const wasm::Module& module, const wasm::FunctionBody& body, LoopIndex loop,
                              const std::vector<uint32_t>& asked) {
  constexpr size_t kMostWork = 1'000'000;
  const auto parent = [&](uint32_t frame) { return body.loop_frames[frame].parent; };
  size_t levels = 0;
  for (uint32_t at = parent(body.loops[loop.value].frame); at != kNone && levels < kMostNestLevels;
       at = parent(at))
    ++levels;
  LiveAround all{std::vector(levels + 1, asked), asked};
  if (asked.empty() || body.has_handlers) return all;

  // Nothing that stands before the outermost loop is reached again.
  uint32_t outermost = loop.value;
  while (const std::optional<LoopIndex> around = body.loops[outermost].parent) outermost = around->value;
  size_t around = 0;
  for (uint32_t at = parent(body.loops[outermost].frame); parent(at) != kNone; at = parent(at)) ++around;
  Asked numbers;
  numbers.number.assign(body.locals.size(), kNone);
  for (const uint32_t local : asked) numbers.number[local] = static_cast<uint32_t>(numbers.count++);
  const LivenessSteps steps =
      read_steps(module, body, numbers, body.loops[outermost].offset, outermost, around);
  Liveness liveness(numbers.count, body.loops.size(), steps);
  liveness.watch(loop.value, levels);
  if (!liveness.run(kMostWork)) return all;
  const auto among = [&](const std::vector<bool>& live) {
    std::vector<uint32_t> locals;
    for (size_t i = 0; i < asked.size(); ++i)
      if (live[i]) locals.push_back(asked[i]);
    return locals;
  };
  LiveAround live{{}, among(liveness.at_loop(loop.value))};
  for (const std::vector<bool>& way : liveness.around()) live.ways_out.push_back(among(way));
  return live;
}

}  // namespace hindsight::jit::optimizing
