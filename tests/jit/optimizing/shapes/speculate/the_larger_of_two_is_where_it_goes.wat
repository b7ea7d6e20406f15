;; A maximum says where the next load is.
;; change: speculate load 0 of f
;; fill: words 0 to 200000 below 25000
;; call: f 3000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $k i32) (local $sum i32)
    (loop $walks
      (local.set $i (local.get $n))
      (local.set $k (i32.add (i32.const 1) (i32.and (local.get $n) (i32.const 31))))
      (loop $walk
        (local.set $i (i32.and (i32.const 32767) (i32.add (local.get $k) (select (i32.shl (local.get $i) (i32.const 1))
          (i32.load (i32.shl (local.get $i) (i32.const 2)))
          (i32.gt_u (i32.shl (local.get $i) (i32.const 1)) (i32.load (i32.shl (local.get $i) (i32.const 2))))))))
        (br_if $walk (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $i)))
      (br_if $walks (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
