// Prints a module with a random loop, as text, for tests/fuzz/fuzz.mjs: `loop_module SEED`. Export "run"
// fills the memory and runs the loop on arrays that lie apart, close together and on top of each other.
// It returns what it made.
#include <charconv>
#include <cstdio>
#include <cstring>

#include "tests/fuzz/early_exit_text.h"
#include "tests/fuzz/loop_text.h"
#include "tests/fuzz/search_text.h"

namespace {

std::string text_of(uint32_t seed) {
  switch (seed % 4) {
    case 0:
      return hindsight::fuzz::LoopText(seed).make();
    case 1:
      return hindsight::fuzz::VectorLoopText(seed).make();
    case 2:
      return hindsight::fuzz::EarlyExitText(seed).make();
    default:
      return hindsight::fuzz::SearchText(seed).make();
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint32_t seed = 0;
  if (argc != 2 || std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), seed).ec != std::errc()) {
    std::fprintf(stderr, "usage: loop_module SEED\n");
    return 2;
  }
  std::string text = text_of(seed);
  text.replace(text.find("(export \"f\")"), std::strlen("(export \"f\")"), "");
  text.pop_back();  // the module's end
  text += R"(
  (func $fill (local $i i32) (local $x i32)
    (local.set $x (i32.const 12345))
    (loop $l
      (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 1103515245)) (i32.const 12345)))
      (i32.store (local.get $i) (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 15))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 65536)))))
  (func (export "run") (param $n i32) (result i64) (local $sum i64)
    (local.set $n (i32.and (local.get $n) (i32.const 255)))
    (call $fill)
    (local.set $sum (call $f (i32.const 8400) (i32.const 20400) (i32.const 32400) (i32.const 44400) (local.get $n)))
    (local.set $sum (i64.xor (local.get $sum) (i64.mul (i64.const 3)
      (call $f (i32.const 8400) (i32.add (i32.const 8400) (local.get $n)) (i32.const 9000) (i32.const 9016) (local.get $n)))))
    (i64.add (local.get $sum)
      (call $f (i32.const 8400) (i32.const 8400) (i32.const 8400) (i32.const 8400) (local.get $n)))))
)";
  std::fputs(text.c_str(), stdout);
}
