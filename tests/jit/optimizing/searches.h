// Loops of searches, in text: a function with its loop changed and as it is, in memories of the same content.
#pragma once

#include <cstring>
#include <functional>
#include <random>

#include "tests/jit/optimizing/hinted.h"

namespace hindsight::jit::testing {

inline constexpr uint32_t kData = 65536;       // tree, table or chains
inline constexpr uint32_t kMost = 3000;        // searches a call
inline constexpr uint32_t kWords = 4 * 16384;  // of memory

// The same function with the loop interleaved and as it is, in memories of the same content.
struct Searches {
  // Asks about a load of the export `of`, in the code of "f".
  Searches(std::string_view wat, uint32_t load, bool osr = false, TestInstance::Options options = {},
           OptimizeRequest settings = {}, std::string_view of = "f")
      : interleaved(wat, settings, options), plain(wat, settings, options) {
    interleaved.request.changes = {
        change(ChangeKind::kInterleave, load_of(*interleaved.module, of, load), 0.5)};
    if (osr) interleaved.request.osr_loops = {LoopIndex(0)};
    version = interleaved.compile("f");
    if (version)
      func_refs(interleaved.instance->context())[interleaved.module->find_export("f")->index].code =
          version->entry;
  }
  const Answer& site() const { return version->answers.at(0); }
  LoopCell& cell() const { return *version->loop_cells.at(0); }
  uint32_t* words(Optimized& of) const { return reinterpret_cast<uint32_t*>(of.instance->memory()); }
  template <typename Fill>
  void fill(Fill fill_one) {
    fill_one(words(interleaved));
    std::memcpy(plain.instance->memory(), interleaved.instance->memory(), 4 * kWords);
  }
  void expect_same(std::vector<Value> args, const std::string& what) {
    const Outcome expected = plain.call("f", args);
    EXPECT_EQ(interleaved.call("f", args), expected) << what;
    EXPECT_EQ(std::memcmp(plain.instance->memory(), interleaved.instance->memory(), 4 * kWords), 0) << what;
  }
  // All the ways that a group may end and the plain loop go on.
  void expect_same_at_all_widths(const std::function<std::vector<Value>(uint32_t n)>& args) {
    for (uint32_t width : {0u, 1u, 2u, 3u, 16u, 64u, 4000000000u}) {
      cell().distance = width;
      for (uint32_t enabled : {1u, 0u}) {
        cell().enabled = enabled;
        for (uint32_t n : {0u, 1u, 2u, 3u, 4u, 15u, 16u, 17u, 18u, 33u, 64u, 65u, 66u, 700u, kMost})
          expect_same(args(n), std::to_string(n) + " searches, " + std::to_string(width) + " at once" +
                                   (enabled ? "" : ", switched off"));
      }
    }
  }

  Optimized interleaved, plain;
  const CodeVersion* version = nullptr;
};

// `search` finds $found from $key; `then` is what the outer loop does with it, for iteration $i of $n.
inline std::string searches(std::string_view locals, std::string_view search, std::string_view then,
                            std::string_view result, std::string_view result_type = "i64") {
  return "(module (memory 4) (func (export \"f\") (param $n i32) (param $root i32) (result " +
         std::string(result_type) + ") (local $i i32) (local $key i32) (local $p i32) (local $sum i64) " +
         std::string(locals) +
         "(local.set $sum (i64.const 0x7fff1234567)) "
         "(block $out (br_if $out (i32.eqz (local.get $n))) (loop $l "
         "(local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2)))) " +
         std::string(search) + " " + std::string(then) +
         " (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))) " +
         std::string(result) + ")";
}
inline constexpr const char* kEnd = ")";

// Nodes of left, right, key, value.
inline constexpr const char* kTreeSearch = R"(
  (local.set $p (local.get $root))
  (block $found (loop $down
    (br_if $found (i32.eqz (local.get $p)))
    (br_if $found (i32.eq (i32.load offset=8 (local.get $p)) (local.get $key)))
    (local.set $p (i32.load (i32.add (local.get $p)
      (i32.shl (i32.ge_u (local.get $key) (i32.load offset=8 (local.get $p))) (i32.const 2)))))
    (br $down))))";
inline constexpr const char* kAddValue = R"(
  (if (local.get $p) (then
    (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
      (i64.extend_i32_u (i32.load offset=12 (local.get $p)))))))";

inline constexpr const char* kSumUp =
    "(local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.extend_i32_u (local.get $p))))";

inline std::vector<Value> of_tree(uint32_t n) {
  return {i32(n), i32(kData)};
}
inline uint32_t build_tree(uint32_t* words, uint32_t low, uint32_t high, uint32_t& next) {
  if (low >= high) return 0;
  const uint32_t at = next;
  next += 16;
  const uint32_t middle = low + (high - low) / 2;
  const uint32_t left = build_tree(words, low, middle, next);
  const uint32_t right = build_tree(words, middle + 1, high, next);
  words[at / 4] = left;
  words[at / 4 + 1] = right;
  words[at / 4 + 2] = 2 * middle + 1;
  words[at / 4 + 3] = middle * 2654435761u;
  return at;
}
inline void fill_tree(uint32_t* words) {
  uint32_t next = kData;
  build_tree(words, 0, 5000, next);
  std::mt19937 random(1);
  for (uint32_t i = 0; i < kMost; ++i) words[i] = random() % 10002;
}

// $lo and $hi close in on the first element that is not below the key; found by branch, not by select.
inline constexpr const char* kBinarySearch = R"(
  (local.set $p (i32.const 0)) (local.set $hi (local.get $root))
  (block $done (br_if $done (i32.eqz (local.get $hi)))
  (loop $halve
    (local.set $mid (i32.shr_u (i32.add (local.get $p) (local.get $hi)) (i32.const 1)))
    (if (i32.lt_u (i32.load offset=65536 (i32.shl (local.get $mid) (i32.const 2))) (local.get $key))
      (then (local.set $p (i32.add (local.get $mid) (i32.const 1))))
      (else (local.set $hi (local.get $mid))))
    (br_if $halve (i32.lt_u (local.get $p) (local.get $hi))))))";

inline void fill_table(uint32_t* words) {
  std::mt19937 random(2);
  for (uint32_t i = 0; i < 20000; ++i) words[kData / 4 + i] = 7 * i;
  for (uint32_t i = 0; i < kMost; ++i) words[i] = random() % 150000;
}

// Chains of next, key, payload; all matches of a chain are added up on the way.
inline std::string chain(std::string_view operation, std::string_view start = "") {
  return std::string(start) + R"(
  (local.set $p (i32.load offset=65536 (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 0x9e3779b1))
    (i32.const 1023)) (i32.const 2))))
  (block $done (loop $chain
    (br_if $done (i32.eqz (local.get $p)))
    (if (i32.eq (i32.load offset=4 (local.get $p)) (local.get $key)) (then
      (local.set $sum ()" +
         std::string(operation) +
         R"( (local.get $sum) (i64.extend_i32_u (i32.load offset=8 (local.get $p)))))))
    (local.set $p (i32.load (local.get $p)))
    (br $chain))))";
}
inline void fill_chains(uint32_t* words) {
  uint32_t node = kData + 4096;
  std::mt19937 random(3);
  for (uint32_t i = 0; i < 4000; ++i, node += 12) {
    const uint32_t key = random() % 3000;
    uint32_t& head = words[kData / 4 + ((key * 0x9e3779b1u) & 1023)];
    words[node / 4] = head;
    words[node / 4 + 1] = key;
    words[node / 4 + 2] = random() | 1;
    head = node;
  }
  for (uint32_t i = 0; i < kMost; ++i) words[i] = random() % 4000;
}

}  // namespace hindsight::jit::testing
