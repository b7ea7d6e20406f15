;; The list's loop also gathers by a counter: the prefetch came first.
;; change: prefetch load 2 of f
;; change: jump-pointers load 0 of f
;; fill: words 64 to 57664 below 1000
;; fill: chain 64 to 57664 by 64
;; call: f 64 900
;; call: f 64 900
(module
  (memory 1)
  (func (export "f") (param $p i32) (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (local.get $p))))
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.and (i32.mul (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 40)) (i32.const 0x7ffc)))))
      (local.set $p (i32.load (local.get $p)))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
