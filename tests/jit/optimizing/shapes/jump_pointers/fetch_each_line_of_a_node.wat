;; Loads of one node share a history; two of them lie on one line.
;; change: jump-pointers load 0 of f
;; change: jump-pointers load 1 of f
;; change: jump-pointers load 2 of f
;; fill: words 64 to 57664 below 1000
;; fill: chain 64 to 57664 by 64
;; call: f 64 0
;; call: f 64 0
(module
  (memory 1)
  (func (export "f") (param $p i32) (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (local.get $p))))
      (local.set $sum (i32.xor (local.get $sum) (i32.load offset=12 (local.get $p))))
      (local.set $sum (i32.mul (local.get $sum) (i32.load offset=200 (local.get $p))))
      (br_if $l (local.tee $p (i32.load (local.get $p)))))
    (local.get $sum)))
