;; A Kronecker graph's edges: one of four ways each level, each of which goes on to the next.
;; change: select branch 1 of f mispredicted 0.4
;; change: select branch 2 of f mispredicted 0.5
;; change: select branch 3 of f mispredicted 0.1
;; fill: words 0 to 32768 below 100
;; call: f 5000 57
;; call: f 300 10
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $a i32) (result i32)
    (local $i i32) (local $v i32) (local $x i32) (local $y i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $x (i32.rotl (local.get $x) (i32.const 1)))
        (local.set $y (i32.rotl (local.get $y) (i32.const 1)))
        (block $next
          (br_if $next (i32.lt_u (local.get $v) (local.get $a)))
          (if (i32.lt_u (local.get $v) (i32.const 76))
            (then (local.set $y (i32.xor (i32.mul (local.get $y) (i32.const 5)) (i32.const 1))) (br $next)))
          (local.set $x (i32.xor (i32.mul (local.get $x) (i32.const 3)) (i32.const 1)))
          (br_if $next (i32.lt_u (local.get $v) (i32.const 95)))
          (local.set $y (i32.sub (local.get $x) (local.get $y))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (i32.add (local.get $x) (i32.mul (local.get $y) (i32.const 31)))))
