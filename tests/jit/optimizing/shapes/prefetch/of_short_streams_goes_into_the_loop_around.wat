;; Sixteen words at a place that is looked up: over before a hardware prefetcher has seen them.
;; change: prefetch load 1 of f
;; fill: words 0 to 8000 below 1000
;; fill: words 65536 to 131072 below 1000000000
;; call: f 2000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $k i32) (local $at i32)
    (loop $blocks
      (local.set $at (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 6)))
      (local.set $k (i32.const 0))
      (loop $words
        (local.set $sum (i32.xor (i32.rotl (local.get $sum) (i32.const 5))
          (i32.load offset=65536 (i32.add (local.get $at) (i32.shl (local.get $k) (i32.const 2))))))
        (br_if $words (i32.ne (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 16))))
      (br_if $blocks (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
