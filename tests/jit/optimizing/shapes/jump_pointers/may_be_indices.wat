;; change: jump-pointers load 0 of f
;; fill: words 0 to 4000 below 1000
;; fill: words 32768 to 36768 below 1000000
;; call: f 5 3000
;; call: f 5 3000
(module
  (memory 1)
  (func (export "f") (param $p i32) (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=32768 (i32.shl (local.get $p) (i32.const 2)))))
      (local.set $p (i32.load (i32.shl (local.get $p) (i32.const 2))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
