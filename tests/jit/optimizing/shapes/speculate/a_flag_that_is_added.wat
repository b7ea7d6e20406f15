;; The comparison's outcome is a number that is added, once more to count how often it went right.
;; change: speculate load 0 of f
;; fill: words 0 to 200000 below 1000000
;; call: f 3000
;; call: f 1
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $right i32) (local $sum i32)
    (loop $descents
      (local.set $i (local.get $n))
      (loop $down
        (local.set $i (i32.add (i32.add (i32.shl (local.get $i) (i32.const 1)) (i32.const 1))
          (local.tee $right (i32.gt_u (i32.load offset=4 (i32.shl (local.get $i) (i32.const 3)))
                                      (i32.load offset=8 (i32.shl (local.get $i) (i32.const 3)))))))
        (local.set $sum (i32.add (local.get $sum) (local.get $right)))
        (br_if $down (i32.lt_u (local.get $i) (i32.const 20000))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $i)))
      (br_if $descents (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
