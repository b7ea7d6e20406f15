;; Weights say that the loop is left after three iterations.
;; change: jump-pointers load 0 of f
;; change: weigh-branches branch 0 of f taken 1000 not-taken 2000
;; fill: words 64 to 57664 below 1000
;; fill: chain 64 to 57664 by 64
;; call: f 64 -1
(module
  (memory 1)
  (func (export "f") (param $p i32) (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (block $out
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (local.get $p))))
        (br_if $out (i32.eqz (local.tee $p (i32.load (local.get $p)))))
        (br $l)))
    (local.get $sum)))
