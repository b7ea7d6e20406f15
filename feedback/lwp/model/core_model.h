// A model of an out-of-order core that reads a trace (base/trace.h): what did each instruction of the guest
// cost, and why? Deterministic: same trace, same configuration, same answers; host addresses enter only as
// offsets.
//
// The model is that of an interval analysis. Operations are dispatched in order, so many a cycle, as long as
// the window has room. Each starts when its operands are ready, which the runs' max-plus terms say. They
// retire in order. A load stalls for the time in which it is the oldest operation and its data are not there.
// Independent misses overlap as far as the window reaches, dependent ones do not. What is hidden by an older
// miss costs nothing. That is also what a clock interrupt sees, which is taken when the oldest instruction
// retires. A mispredicted branch ends dispatch until its condition is known. (Karkhanis and Smith, "A
// first-order superscalar processor model", 2004; Genbrugge, Eyerman and Eeckhout, "Interval simulation",
// 2010.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/trace.h"
#include "feedback/lwp/format/control_block.h"
#include "feedback/lwp/format/record.h"
#include "feedback/lwp/model/branch_predictor.h"
#include "feedback/lwp/model/cache_model.h"

namespace hindsight::lwp {

struct ModelConfig {
  CacheConfig cache;
  std::string predictor = "tage";
  uint32_t width = 4;     // operations dispatched and retired a cycle
  uint32_t window = 256;  // operations between the oldest not retired and the newest dispatched
  uint32_t penalty = 14;  // cycles from a mispredicted branch's end to the next dispatch
  uint32_t store_buffer = 64;
  uint32_t forward = 4;  // cycles from a value stored, in a frame or in memory, to its load
  // Loads after a mispredicted branch that do not depend on it begin before it is resolved.
  bool wrong_path = true;
  bool remember_addresses = false;  // AddressSet for every load
};

// A current server core: 32 KiB, 1 MiB and 32 MiB of cache, 4 KiB pages.
ModelConfig default_model();

// The default with changes, words separated by commas.
//     l1=32K/8/4  l2=1M/8/14  l3=off  l3=32M/16/50/lru|fifo|random   size/ways/latency
//     memory=350/8                                                   latency/interval
//     line=64  page=4K  tlb1=72/72/0  tlb2=3072/12/7  walk=40
//     prefetch=16                                                    lines; 0 off
//     predictor=bimodal|gshare|tage  width=4  window=256  penalty=14  store_buffer=64  forward=4
//     wrong_path=1                                                   0 off
// Errors: kUsage, naming the word.
Result<ModelConfig> parse_model(std::string_view text);

// Addresses of one load, exactly, in granules of 4 bytes.
class AddressSet {
 public:
  void add(uint64_t address) {
    const uint64_t chunk = address >> kChunkShift;
    if (chunk >= kMostChunks) return;
    if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
    if (!chunks_[chunk]) chunks_[chunk] = std::make_unique<uint64_t[]>(kWords);
    chunks_[chunk][(address & kChunkMask) >> 8] |= uint64_t{1} << ((address >> 2) & 63);
  }
  bool contains(uint64_t address) const {
    const uint64_t chunk = address >> kChunkShift;
    if (chunk >= chunks_.size() || !chunks_[chunk]) return false;
    return (chunks_[chunk][(address & kChunkMask) >> 8] >> ((address >> 2) & 63)) & 1;
  }

 private:
  static constexpr uint32_t kChunkShift = 16;
  static constexpr uint64_t kChunkMask = (uint64_t{1} << kChunkShift) - 1;
  static constexpr uint64_t kMostChunks = uint64_t{1} << 17;  // 8 GiB
  static constexpr size_t kWords = size_t{1} << (kChunkShift - 8);
  std::vector<std::unique_ptr<uint64_t[]>> chunks_;
};

// Exact totals of one instruction or function. A function compiled twice has one entry.
struct ModelAccess {
  uint64_t module = 0;
  FuncIndex function;
  WasmOffset offset;
  bool store = false;
  uint64_t executions = 0;
  uint64_t from_level[5] = {};  // by where the data came from: L1, ..., memory (the last level used)
  uint64_t tlb_misses = 0;
  uint64_t latency_cycles = 0;            // summed
  uint64_t stall_cycles = 0;              // in which it was the oldest operation and waited for its data
  uint64_t miss_stall_cycles = 0;         // of these, of executions that missed L1
  const AddressSet* addresses = nullptr;  // of a load, if remembered; owned by the model
};
struct ModelBranch {
  uint64_t module = 0;
  FuncIndex function;
  WasmOffset offset;
  TraceEnd kind = TraceEnd::kBranch;
  uint64_t executions = 0, taken = 0, mispredicted = 0;
};
struct ModelFunction {
  uint64_t module = 0;
  FuncIndex function;
  uint64_t instructions = 0, cycles = 0;
};
struct ModelTotals {
  std::vector<ModelAccess> accesses;
  std::vector<ModelBranch> branches;
  std::vector<ModelFunction> functions;
  uint64_t instructions = 0, cycles = 0;
  uint64_t unfinished = 0;  // words of runs that were left in the middle (traps)
  uint64_t unknown = 0;     // runs that the directory does not know
};

// Not thread-safe.
class CoreModel {
 public:
  // Where records go: those that the control block's intervals ask for.
  class Records {
   public:
    virtual ~Records() = default;
    virtual void record(const EventRecord& record) = 0;
  };

  // `block` is read when the model is made (intervals, counters, filters); both references outlive the model.
  CoreModel(const ModelConfig& config, const TraceDirectory& directory, const ControlBlock& block,
            Records& records);
  ~CoreModel();

  // Takes in what is complete of `words`; returns how many words that was. Hand in the rest again, followed
  // by more.
  size_t consume(std::span<const uint64_t> words);

  ModelTotals totals() const;

 private:
  using Ticks = uint64_t;  // 1/16 cycle
  static constexpr Ticks kCycle = 16;

  struct AccessState {
    uint64_t executions = 0;
    uint64_t from_level[5] = {};
    uint64_t tlb_misses = 0;
    Ticks latency = 0, stall = 0, miss_stall = 0;
    std::unique_ptr<AddressSet> addresses;
  };
  struct RunState {
    const TraceRun* run = nullptr;
    uint64_t key = 0;  // the same in every process: names the run to predictor and prefetcher
    uint64_t executions = 0, taken = 0, mispredicted = 0;
    Ticks time = 0;
    std::vector<AccessState> accesses;
  };
  struct Frame {
    uint64_t address = 0;  // native; a frame below a newer one's is dead
    size_t base = 0;       // in ready_
    uint32_t slots = 0;
    uint64_t memory = 0, memory_key = 0;
  };
  struct Retired {
    uint64_t operation = 0;
    Ticks time = 0;
  };
  struct Store {
    uint64_t granule = ~uint64_t{0};
    Ticks ready = 0, drained = 0;
  };
  struct Counter {  // as the hardware counts: negative makes a record and reloads
    bool on = false;
    int64_t left = 0, interval = 0;
    bool count(uint64_t events);
  };

  RunState* state_of(uint32_t id);
  void enter(const TraceRun& run, uint64_t frame, uint64_t memory);
  void land(uint64_t frame);
  void execute(RunState& state, const uint64_t* words, uint64_t outcome, uint64_t target);
  void load(RunState& state, const TraceRun& run, size_t index, uint64_t host);
  void store(RunState& state, const TraceRun& run, size_t index, uint64_t host);
  void bulk(RunState& state, const TraceRun& run, size_t index, const uint64_t* words);
  void end(RunState& state, uint64_t outcome, uint64_t target);
  void dispatch(uint32_t operations);
  void retired();
  void clock(const TraceRun& run, CodeOffset code);
  Ticks ready(const TraceRun& run, TraceSpan span) const;
  uint64_t key_of(uint64_t host) const;
  uint64_t pc_of(const TraceRun& run, CodeOffset code) const { return run.function->code + code.value; }

  const ModelConfig config_;
  const TraceDirectory& directory_;
  Records& records_;
  CacheModel cache_;
  std::unique_ptr<BranchPredictor> predictor_;
  const Ticks operation_;  // time of one
  Counter instructions_, branches_, misses_, clocks_;
  uint64_t min_latency_ = 0;
  Ticks next_clock_ = 0;

  std::vector<std::unique_ptr<RunState>> runs_;  // by id
  std::vector<Frame> frames_;
  std::vector<Ticks> ready_;
  std::vector<Ticks> done_;         // of the accesses of the run in progress
  std::vector<Ticks> new_;          // values of its writes
  std::vector<uint64_t> memories_;  // bases, in the order in which they were first seen
  bool called_ = false;
  size_t call_base_ = 0;

  uint64_t operation_count_ = 0;
  Ticks dispatched_ = 0, retired_ = 0, window_floor_ = 0;
  Ticks shadow_ = 0;             // when it would have been dispatched but for the last mispredicted branch
  std::vector<Retired> window_;  // ring of the newest; begin and end count on
  uint64_t window_begin_ = 0, window_end_ = 0;
  std::vector<Store> forwarding_;    // direct-mapped by address
  std::vector<Ticks> store_buffer_;  // ring: when each drains
  uint64_t stores_ = 0;
  Ticks last_drain_ = 0;
  uint64_t total_instructions_ = 0, unfinished_ = 0, unknown_ = 0;
};

}  // namespace hindsight::lwp
