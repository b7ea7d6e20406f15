;; An odd counter that goes by two steps over zero; the address leaves memory some time later.
;; change: prefetch load 1 of f
;; fill: words 0 to 65536 below 1000
;; call: f 13
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536 (i32.shl (i32.load (local.get $i)) (i32.const 2)))))
      (local.set $i (i32.add (local.get $i) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 2)))))
    (local.get $sum)))
