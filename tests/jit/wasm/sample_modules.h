// Valid modules for tests that break them: the bundled workloads, and one that uses every family of
// instructions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace hindsight::wasm::testing {

struct SampleModule {
  std::string name;
  std::vector<uint8_t> bytes;
};

// Text that touches every section and every kind of immediate.
inline constexpr const char* kEverythingText = R"((module $everything
  (type $pair (func (param i32 i64) (result i64 i32)))
  (import "env" "host" (func $host (param i32) (result i32)))
  (import "env" "base" (global $base i32))
  (table $t 4 8 funcref)
  (table $x 2 externref)
  (memory 1 3)
  (tag $thrown (export "thrown") (param i32 i64))
  (global $g (mut i64) (i64.const -5))
  (global $f f64 (f64.const 0x1.8p3))
  (global $r funcref (ref.func $swap))
  (export "swap" (func $swap))
  (export "memory" (memory 0))
  (start $main)
  (elem (i32.const 0) func $swap $main)
  (elem $passive funcref (ref.func $main) (ref.null func))
  (elem declare func $loop)
  (data (i32.const 8) "hello\00\ff")
  (data $later "passive")
  (func $main
    (local $i i32) (local f32 f64 f64)
    (loop $again
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (i32.store offset=16 align=2 (i32.shl (local.get $i) (i32.const 2)) (call $host (local.get $i)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 100))))
    (memory.init $later (i32.const 0) (i32.const 0) (i32.const 7))
    (data.drop $later)
    (memory.copy (i32.const 0) (i32.const 8) (i32.const 4))
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 4))
    (table.init $t $passive (i32.const 0) (i32.const 0) (i32.const 1))
    (elem.drop $passive)
    (table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 1))
    (drop (table.grow $x (ref.null extern) (i32.const 1)))
    (table.fill $x (i32.const 0) (ref.null extern) (i32.const 1))
    (table.set $x (i32.const 0) (table.get $x (i32.const 1)))
    (drop (i32.trunc_sat_f64_u (f64.convert_i32_s (memory.grow (table.size $x)))))
    (drop (ref.is_null (ref.func $loop))))
  (func $swap (type $pair) (local.get 1) (local.get 0))
  (func $catcher (param i32) (result i64)
    (try $outer (result i64)
      (do
        (try (do (throw $thrown (local.get 0) (i64.const 6))) (delegate $outer))
        (i64.const 0))
      (catch $thrown
        (if (local.get 0) (then (rethrow 1)))
        (return))
      (catch_all (i64.const 7))))
  (func $loop (param i32) (result f64)
    (i32.const 3) (i64.const -9999999999)
    (block (type $pair) (call $swap) (drop) (drop) (i64.const 1) (i32.const 2))
    (drop) (global.set $g)
    (block $a (result f64)
      (block $b
        (block $c (br_table $b $c $b (local.get 0)))
        (drop (call_indirect $t (type $pair) (i32.const 1) (i64.const 2) (i32.const 0)))
        (drop))
      (if (result f64) (i32.extend8_s (local.get 0))
        (then (f64.promote_f32 (f32.const 1.5)))
        (else (br $a (select (global.get $f) (f64.const nan) (i32.const 1)))))))
))";

// The .wasm files under `samples`, by name; at most `limit`, spread over the whole list.
inline std::vector<SampleModule> bundled_modules(const std::string& samples, size_t limit) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator it(samples, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".wasm") paths.push_back(it->path());
  std::ranges::sort(paths);
  std::vector<SampleModule> out;
  const size_t stride = std::max<size_t>(1, paths.size() / limit);
  for (size_t i = 0; i < paths.size() && out.size() < limit; i += stride) {
    std::ifstream in(paths[i], std::ios::binary);
    out.push_back({paths[i].filename().string(), {std::istreambuf_iterator<char>(in), {}}});
  }
  return out;
}

}  // namespace hindsight::wasm::testing
