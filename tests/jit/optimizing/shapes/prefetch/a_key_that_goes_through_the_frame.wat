;; A key that is stored in the frame and loaded from there, as it is passed by reference. The two addresses differ if the sum wraps.
;; change: prefetch load 2 of f
;; fill: words 65536 to 81536 below 3000
;; fill: words 0 to 16384 below 4000
;; call: f 4000 40960
(module
  (memory 8)
  (func (export "f") (param $n i32) (param $sp i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (i32.store offset=24 (local.get $sp)
        (i32.and (i32.mul (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 0x9e3779b1)) (i32.const 3999)))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
        (i32.load offset=65536 (i32.shl (i32.load (i32.add (local.get $sp) (i32.const 24))) (i32.const 2)))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
