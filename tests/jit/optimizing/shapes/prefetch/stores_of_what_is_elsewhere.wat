;; Records are written where a permutation says: a store that misses is prefetched as a load is. What is written in order is
;; left to the hardware, and the compile goes on without it.
;; change: prefetch store 0 of f
;; change: prefetch store 2 of f
;; fill: words 0 to 65536 below 30000
;; call: f 16384
;; call: f 3
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $to i32) (local $sum i32)
    (loop $l
      (local.set $to (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))
      (i32.store offset=65536 (local.get $to) (local.get $i))
      (i32.store offset=65540 (local.get $to) (local.tee $sum (i32.add (local.get $sum) (local.get $to))))
      (i32.store offset=196608 (i32.shl (local.get $i) (i32.const 2)) (local.get $sum))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
