;; The version with remembers where the loop went, and prefetches from that. Other loads of a node are on the same line.
;; change: jump-pointers load 0 of f
;; fill: words 64 to 57664 below 1000
;; fill: chain 64 to 57664 by 64
;; call: f 64 -1
;; call: f 64 -1
;; call: f 64 700
;; call: f 0 5
(module
  (memory 1)
  (func (export "f") (param $p i32) (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $p)))
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (i32.mul (i32.load offset=8 (local.get $p)) (i32.const 5))))
        (i32.store offset=4 (local.get $p) (i32.add (i32.load offset=4 (local.get $p)) (local.get $sum)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $out (i32.eqz (local.get $n)))
        (br_if $l (local.tee $p (i32.load (local.get $p))))))
    (local.get $sum)))
