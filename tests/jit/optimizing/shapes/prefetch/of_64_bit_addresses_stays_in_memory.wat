;; What an index of 64 bits would lead to anywhere is asked for within the memory: one select more than for 32 bits.
;; change: prefetch load 1 of f
;; fill: words 0 to 40000 below 1000
;; call: f 1
(module
  (memory i64 4)
  (func (export "f") (param $n i64) (result i32)
    (local $i i64) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum)
        (i32.load (i64.mul (i64.load (i64.shl (local.get $i) (i64.const 3))) (i64.const 24)))))
      (br_if $l (i64.lt_u (local.tee $i (i64.add (local.get $i) (i64.const 1))) (local.get $n))))
    (local.get $sum)))
