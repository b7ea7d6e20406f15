;; Records of 28 bytes, of which an iteration reads the first word and the last: one in three lies in two lines of the cache.
;; change: prefetch load 1 of f
;; fill: words 0 to 40000 below 2000 times 28 plus 65536
;; fill: words 65536 to 121600 below 1000
;; call: f 9000
(module
  (memory 2)
  (func (export "f") (param $n i32) (result i32) (local $i i32) (local $sum i32) (local $p i32)
    (loop $l
      (local.set $p (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $sum (i32.add (local.get $sum) (i32.mul (i32.load (local.get $p)) (i32.load offset=24 (local.get $p)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
