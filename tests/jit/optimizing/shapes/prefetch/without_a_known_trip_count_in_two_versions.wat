;; The data say when the loop ends: no strips, and two versions of the loop as it is.
;; change: prefetch load 1 of f
;; fill: words 0 to 40000 below 1024
;; fill: words 65536 to 69632 below 4 plus 1
;; call: f 8000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum)
        (i32.load offset=65536 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $sum) (local.get $n))))
    (local.get $i)))
