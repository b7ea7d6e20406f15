;; The state of a random number lies in memory, as a store may be to it. Two numbers an iteration, of two kinds.
;; change: prefetch load 2 of f
;; fill: words 65536 to 81920 below 3000
;; fill: word 40 is 12345
;; call: f 4000
;; call: f 7
(module
  (memory 8)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $s i32) (local $sum i32)
    (loop $l
      (local.set $s (i32.load (i32.const 40)))
      (local.set $s (i32.xor (local.get $s) (i32.shl (local.get $s) (i32.const 13))))
      (local.set $s (i32.xor (local.get $s) (i32.shr_u (local.get $s) (i32.const 17))))
      (local.set $s (i32.xor (local.get $s) (i32.shl (local.get $s) (i32.const 5))))
      (i32.store offset=40 (i32.const 0) (local.get $s))
      (i32.store8 offset=100 (i32.and (local.get $sum) (i32.const 1023)) (local.get $sum))
      (local.set $s (i32.add (i32.mul (i32.load (i32.const 40)) (i32.const 1664525)) (i32.const 1013904223)))
      (i32.store offset=40 (i32.const 0) (local.get $s))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
        (i32.load offset=65536 (i32.and (local.get $s) (i32.const 0x3ffc)))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
