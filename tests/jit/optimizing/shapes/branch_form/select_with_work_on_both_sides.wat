;; change: select branch 1 of f mispredicted 0.45
;; fill: words 0 to 32768 below 1000
;; call: f 1000 500
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $limit i32) (result i32)
    (local $i i32) (local $v i32) (local $count i32) (local $x i32) (local $y i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (if (i32.lt_u (local.get $v) (local.get $limit))
          (then
            (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 5)) (local.get $v)))
            (i32.store offset=32768 (i32.const 8) (local.get $x)))
          (else
            (local.set $y (i32.xor (i32.rotl (local.get $y) (i32.const 3)) (local.get $v)))
            (i32.store offset=32768 (i32.const 12) (local.get $y))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (i32.add (local.get $x) (local.get $y))))
