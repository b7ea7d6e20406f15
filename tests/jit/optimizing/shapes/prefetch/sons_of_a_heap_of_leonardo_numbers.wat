;; Down a heap whose sons' sizes are looked up, as `qsort` of smoothsort goes: how far the sons are is a load, which son comes next is not.
;; change: prefetch load 1 of f
;; fill: words 1024 to 200000 below 1000000
;; fill: words 0 to 128 below 64
;; call: f 3000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $at i32) (local $order i32) (local $left i32) (local $right i32) (local $sum i32)
    (loop $trees
      (local.set $at (i32.const 190000)) (local.set $order (i32.const 31))
      (local.set $at (i32.sub (local.get $at) (i32.shl (local.get $n) (i32.const 2))))
      (loop $down
        (local.set $right (i32.sub (local.get $at) (i32.const 4)))
        (local.set $left (i32.sub (local.get $right)
          (i32.shl (i32.and (i32.load (i32.shl (local.get $order) (i32.const 2))) (i32.const 1023)) (i32.const 2))))
        (if (i32.ge_u (i32.load (local.get $left)) (i32.load (local.get $right)))
          (then (local.set $at (local.get $left)) (local.set $order (i32.sub (local.get $order) (i32.const 1))))
          (else (local.set $at (local.get $right)) (local.set $order (i32.sub (local.get $order) (i32.const 2)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $at)))
        (br_if $down (i32.gt_s (local.get $order) (i32.const 1))))
      (br_if $trees (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
