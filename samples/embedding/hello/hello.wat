;; The guest of hello.cc.
(module $hello
  (import "host" "weight" (func $weight (param i32) (result i32)))

  ;; The sum of the host's weights of 0 .. n-1.
  (func $total (export "total") (param $n i32) (result i64)
    (local $sum i64)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $n)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_s (call $weight (local.get $n)))))
        (br $next)))
    (local.get $sum))

  ;; Traps where a / b does not exist.
  (func $quotient (param $a i32) (param $b i32) (result i32)
    (i32.div_s (local.get $a) (local.get $b)))
  (func $divide (export "divide") (param $a i32) (param $b i32) (result i32)
    (i32.add (call $quotient (local.get $a) (local.get $b)) (i32.const 0)))

  ;; A loop that gets hot: n steps of a linear congruential generator.
  (func $spin (export "spin") (param $n i64) (result i64)
    (local $state i64)
    (loop $next
      (local.set $state
        (i64.add (i64.mul (local.get $state) (i64.const 6364136223846793005)) (i64.const 1442695040888963407)))
      (local.set $n (i64.sub (local.get $n) (i64.const 1)))
      (br_if $next (i64.ne (local.get $n) (i64.const 0))))
    (local.get $state)))
