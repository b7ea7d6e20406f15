;; change: jump-pointers load 0 of f
;; fill: chain 64 to 57664 by 64
;; call: f 64
(module
  (memory i64 1)
  (func (export "f") (param $p i64) (result i32)
    (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (local.get $p))))
      (br_if $l (i32.wrap_i64 (local.tee $p (i64.load (local.get $p))))))
    (local.get $sum)))
