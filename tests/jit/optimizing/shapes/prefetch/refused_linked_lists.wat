;; change: prefetch load 0 of f
;; change: prefetch load 1 of f
;; fill: chain 64 to 57664 by 64
;; call: f 64
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=4 (local.get $n))))
      (br_if $l (local.tee $n (i32.load (local.get $n)))))
    (local.get $sum)))
