#include "feedback/lwp/model/branch_predictor.h"

#include <algorithm>
#include <array>
#include <vector>

namespace hindsight::lwp {
namespace {

uint64_t mix(uint64_t x) {  // the finalizer of MurmurHash3: every bit of x reaches every bit of the result
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  x ^= x >> 33;
  return x;
}

// Saturating counters: -limit-1 .. limit, >= 0 means taken.
template <int kLimit>
void train(int8_t& counter, bool up) {
  if (up && counter < kLimit) ++counter;
  if (!up && counter > -kLimit - 1) --counter;
}

// Targets of indirect branches: the last one after the same path, else the last one at all. Two tables are
// enough to tell a switch that follows a pattern from one that does not.
class TargetTable {
 public:
  TargetTable() { reset(); }

  bool predicted_right(uint64_t pc, uint64_t path, uint64_t target) {
    Entry& last = last_[mix(pc) % kEntries];
    const uint64_t tag = mix(pc ^ mix(path));
    Entry& by_path = by_path_[tag % kEntries];
    const bool path_hit = by_path.tag == tag;
    const bool right = path_hit ? by_path.target == target : last.tag == pc && last.target == target;
    if (path_hit) {
      if (by_path.target == target) {
        by_path.confidence = std::min<uint8_t>(by_path.confidence + 1, 3);
      } else if (by_path.confidence > 0) {
        --by_path.confidence;
      } else {
        by_path.target = target;
      }
    } else if (!right) {  // only what the plain table cannot do is worth an entry
      by_path = {tag, target, 0};
    }
    last = {pc, target, 0};
    return right;
  }

  void reset() {
    last_.assign(kEntries, {});
    by_path_.assign(kEntries, {});
  }

 private:
  static constexpr size_t kEntries = 4096;
  struct Entry {
    uint64_t tag = ~uint64_t{0};
    uint64_t target = 0;
    uint8_t confidence = 0;
  };
  std::vector<Entry> last_, by_path_;
};

// The way that execution took, for TargetTable: a few bits of each of the last indirect targets, and a bit of
// each conditional branch.
class Path {
 public:
  void outcome(bool taken) { bits_ = (bits_ << 1) | (taken ? 1 : 0); }
  void target(uint64_t to) { bits_ = (bits_ << 4) ^ (mix(to) & 0xff); }
  uint64_t value() const { return bits_ & ((uint64_t{1} << 40) - 1); }
  void reset() { bits_ = 0; }

 private:
  uint64_t bits_ = 0;
};

class Bimodal final : public BranchPredictor {
 public:
  explicit Bimodal(unsigned table_bits) : mask_((uint64_t{1} << table_bits) - 1) { reset(); }
  std::string_view name() const override { return "bimodal"; }
  bool predicted_right(uint64_t pc, bool taken) override {
    int8_t& counter = counters_[mix(pc) & mask_];
    const bool right = (counter >= 0) == taken;
    train<1>(counter, taken);
    return right;
  }
  bool target_predicted_right(uint64_t pc, uint64_t target) override {
    return targets_.predicted_right(pc, 0, target);
  }
  void reset() override {
    counters_.assign(mask_ + 1, 0);
    targets_.reset();
  }

 private:
  uint64_t mask_;
  std::vector<int8_t> counters_;
  TargetTable targets_;
};

class Gshare final : public BranchPredictor {
 public:
  Gshare(unsigned table_bits, unsigned history_bits)
      : mask_((uint64_t{1} << table_bits) - 1),
        history_mask_((uint64_t{1} << std::clamp(history_bits, 1u, 32u)) - 1) {
    reset();
  }
  std::string_view name() const override { return "gshare"; }
  bool predicted_right(uint64_t pc, bool taken) override {
    const uint64_t hashed = mix(pc);
    int8_t& by_history = by_history_[(hashed ^ mix(history_ & history_mask_)) & mask_];
    int8_t& by_pc = by_pc_[hashed & mask_];
    int8_t& chooser = chooser_[hashed & mask_];
    const bool history_right = (by_history >= 0) == taken;
    const bool pc_right = (by_pc >= 0) == taken;
    const bool right = chooser >= 0 ? history_right : pc_right;
    if (history_right != pc_right) train<kChooserLimit>(chooser, history_right);
    train<1>(by_history, taken);
    train<3>(by_pc, taken);
    history_ = (history_ << 1) | (taken ? 1 : 0);
    path_.outcome(taken);
    return right;
  }
  bool target_predicted_right(uint64_t pc, uint64_t target) override {
    const bool right = targets_.predicted_right(pc, path_.value(), target);
    path_.target(target);
    history_ = (history_ << 2) ^ (mix(target) & 3);
    return right;
  }
  void reset() override {
    by_history_.assign(mask_ + 1, 0);
    by_pc_.assign(mask_ + 1, 0);
    chooser_.assign(mask_ + 1, -1);
    history_ = 0;
    path_.reset();
    targets_.reset();
  }

 private:
  // Slow to change its mind: histories met for the first time come in clusters.
  static constexpr int kChooserLimit = 31;
  uint64_t mask_;
  uint64_t history_mask_;
  uint64_t history_ = 0;
  std::vector<int8_t> by_history_, by_pc_, chooser_;
  Path path_;
  TargetTable targets_;
};

// Outcomes of the last kLongest branches, and hashes of its prefixes that are kept up to date incrementally.
// A hash is a cyclic shift register of `width` bits: the newest outcome enters, and the one that leaves the
// prefix is taken out. Source: Michaud, "A PPM-like, tag-based branch predictor", 2005.
class Tage final : public BranchPredictor {
 public:
  Tage() { reset(); }
  std::string_view name() const override { return "tage"; }

  bool predicted_right(uint64_t pc, bool taken) override {
    const uint64_t hashed = mix(pc);
    std::array<uint32_t, kTables> index;
    std::array<uint16_t, kTables> tag;
    int provider = -1;
    int alternate = -1;
    for (int t = kTables - 1; t >= 0; --t) {
      const Folded& f = folded_[static_cast<size_t>(t)];
      const auto st = static_cast<size_t>(t);
      index[st] = static_cast<uint32_t>((hashed ^ (hashed >> (kIndexBits + st)) ^ f.index) & kIndexMask);
      tag[st] = static_cast<uint16_t>(((hashed >> 20) ^ f.tag ^ (uint32_t{f.tag2} << 1)) & kTagMask);
      if (alternate >= 0)
        continue;  // still needed: index and tag of the shorter ones are only for allocation
      if (tables_[st][index[st]].tag == tag[st] && tables_[st][index[st]].valid) {
        (provider < 0 ? provider : alternate) = t;
      }
    }
    int8_t& base = base_[hashed & kBaseMask];
    const bool base_taken = base >= 0;
    const auto entry = [&](int t) -> Entry& {
      return tables_[static_cast<size_t>(t)][index[static_cast<size_t>(t)]];
    };
    const bool alternate_taken = alternate >= 0 ? entry(alternate).counter >= 0 : base_taken;
    bool predicted = alternate_taken;
    bool provider_taken = alternate_taken;
    bool weak = false;
    if (provider >= 0) {
      const Entry& e = entry(provider);
      provider_taken = e.counter >= 0;
      weak = (e.counter == 0 || e.counter == -1) && e.useful == 0;
      predicted = weak && trust_alternate_ >= 0 ? alternate_taken : provider_taken;
    }
    const bool right = predicted == taken;

    // A new entry competes with what would have been said without it.
    if (weak && provider_taken != alternate_taken) train<15>(trust_alternate_, alternate_taken == taken);
    if (provider >= 0) {
      Entry& e = entry(provider);
      if (provider_taken != alternate_taken) {
        if (provider_taken == taken) {
          if (e.useful < 3) ++e.useful;
        } else if (e.useful > 0) {
          --e.useful;
        }
      }
      train<3>(e.counter, taken);
      if (e.useful == 0) {  // it may go soon: keep what comes after it trained
        if (alternate >= 0)
          train<3>(entry(alternate).counter, taken);
        else
          train<3>(base, taken);
      }
    } else {
      train<3>(base, taken);
    }
    if (!right && provider < kTables - 1) allocate(provider + 1, index, tag, taken);
    push(taken);
    path_.outcome(taken);
    return right;
  }

  bool target_predicted_right(uint64_t pc, uint64_t target) override {
    const bool right = targets_.predicted_right(pc, path_.value(), target);
    path_.target(target);
    const uint64_t bits = mix(target);
    push((bits & 1) != 0);
    push((bits & 2) != 0);
    return right;
  }

  void reset() override {
    base_.assign(kBaseMask + 1, 0);
    for (auto& table : tables_) table.assign(kIndexMask + 1, {});
    history_.fill(0);
    at_ = 0;
    trust_alternate_ = 0;
    allocations_ = 0;
    random_ = 0x2545f4914f6cdd1d;
    for (size_t t = 0; t < kTables; ++t) {
      const uint32_t length = kLengths[t];
      folded_[t] = {};
      folded_[t].length = length;
    }
    path_.reset();
    targets_.reset();
  }

 private:
  static constexpr int kTables = 10;
  static constexpr std::array<uint32_t, kTables> kLengths = {4, 8, 14, 24, 44, 80, 144, 260, 480, 1000};
  static constexpr unsigned kIndexBits = 11;
  static constexpr unsigned kTagBits = 12;
  static constexpr uint64_t kIndexMask = (uint64_t{1} << kIndexBits) - 1;
  static constexpr uint64_t kTagMask = (uint64_t{1} << kTagBits) - 1;
  static constexpr uint64_t kBaseMask = (uint64_t{1} << 14) - 1;
  static constexpr size_t kHistory = 1024;  // a power of two above the longest length
  static_assert(kLengths.back() < kHistory);

  struct Entry {
    uint16_t tag = 0;
    int8_t counter = 0;
    uint8_t useful = 0;
    bool valid = false;
  };
  struct Folded {
    uint32_t length = 0;
    uint32_t index = 0, tag = 0, tag2 = 0;
  };

  static void fold(uint32_t& value, unsigned width, uint32_t newest, uint32_t leaving, uint32_t length) {
    value = (value << 1) | newest;
    value ^= leaving << (length % width);
    value ^= value >> width;
    value &= (1u << width) - 1;
  }

  void push(bool taken) {
    const uint32_t newest = taken ? 1 : 0;
    for (Folded& f : folded_) {
      const uint32_t leaving = history_[(at_ - f.length) % kHistory];
      fold(f.index, kIndexBits, newest, leaving, f.length);
      fold(f.tag, kTagBits, newest, leaving, f.length);
      fold(f.tag2, kTagBits - 1, newest, leaving, f.length);
    }
    history_[at_ % kHistory] = static_cast<uint8_t>(newest);
    ++at_;
  }

  // After a wrong prediction, takes an entry with a longer history. It is in the first or, at times, a later
  // table, so that not every pattern fights for the same one.
  void allocate(int from, const std::array<uint32_t, kTables>& index,
                const std::array<uint16_t, kTables>& tag, bool taken) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    int at = from;
    if ((random_ & 3) == 0 && at < kTables - 1) ++at;
    for (; at < kTables; ++at) {
      const auto t = static_cast<size_t>(at);
      Entry& e = tables_[t][index[t]];
      if (e.useful == 0) {
        e = {tag[t], static_cast<int8_t>(taken ? 0 : -1), 0, true};
        if (allocations_ > 0) --allocations_;
        return;
      }
    }
    // Nothing was free: age what stood in the way, and everything if that happens all the time.
    for (at = from; at < kTables; ++at) {
      const auto t = static_cast<size_t>(at);
      --tables_[t][index[t]].useful;
    }
    if (++allocations_ >= kFailuresToAge) {
      allocations_ = 0;
      for (auto& table : tables_)
        for (Entry& e : table) e.useful >>= 1;
    }
  }

  static constexpr uint32_t kFailuresToAge = 1024;
  std::vector<int8_t> base_;
  std::array<std::vector<Entry>, kTables> tables_;
  std::array<Folded, kTables> folded_;
  std::array<uint8_t, kHistory> history_;
  uint64_t at_ = 0;
  int8_t trust_alternate_ = 0;
  uint32_t allocations_ = 0;
  uint64_t random_ = 0;
  Path path_;
  TargetTable targets_;
};

}  // namespace

std::unique_ptr<BranchPredictor> make_bimodal(unsigned table_bits) {
  return std::make_unique<Bimodal>(table_bits);
}
std::unique_ptr<BranchPredictor> make_gshare(unsigned table_bits, unsigned history_bits) {
  return std::make_unique<Gshare>(table_bits, history_bits);
}
std::unique_ptr<BranchPredictor> make_tage() {
  return std::make_unique<Tage>();
}

std::unique_ptr<BranchPredictor> make_branch_predictor(std::string_view name) {
  if (name == "bimodal") return make_bimodal();
  if (name == "gshare") return make_gshare();
  if (name == "tage") return make_tage();
  return nullptr;
}

}  // namespace hindsight::lwp
