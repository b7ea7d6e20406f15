;; A column of a matrix: the hardware prefetches no such strides.
;; change: prefetch load 0 of f
;; fill: words 0 to 262144 below 1000000000
;; call: f 40 4100
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $row i32) (result i32)
    (local $at i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $sum (i32.xor (i32.rotl (local.get $sum) (i32.const 1)) (i32.load (local.get $at))))
        (local.set $at (i32.add (local.get $at) (local.get $row)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (local.get $sum)))
