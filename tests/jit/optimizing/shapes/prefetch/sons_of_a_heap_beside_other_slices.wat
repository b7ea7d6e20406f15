;; Slices of both loops: those of the heap's loads are made of blocks that others have split by then.
;; change: prefetch load 0 of f weight 0.1
;; change: prefetch load 1 of f weight 0.9
;; change: prefetch load 2 of f weight 0.8
;; change: prefetch load 3 of f weight 0.7
;; change: prefetch load 4 of f weight 0.6
;; change: prefetch load 5 of f weight 0.5
;; fill: words 0 to 200000 below 1000000
;; fill: words 200704 to 233472 below 30000
;; call: f 30000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $son i32) (local $key i32) (local $sum i32)
    (block $out
      (br_if $out (i32.lt_u (local.get $n) (i32.const 3)))
      (loop $pop
        (local.set $key (i32.add (i32.const 900000)
          (i32.load offset=200704 (i32.and (i32.mul (local.get $n) (i32.const 0x9e3779b4)) (i32.const 32764)))))
        (local.set $i (i32.const 0))
        (block $placed
          (loop $down
            (local.set $son (i32.add (i32.shl (local.get $i) (i32.const 1)) (i32.const 1)))
            (br_if $placed (i32.ge_u (i32.add (local.get $son) (i32.const 1)) (local.get $n)))
            (if (i32.gt_u (i32.load (i32.shl (local.get $son) (i32.const 2)))
                          (i32.load offset=4 (i32.shl (local.get $son) (i32.const 2))))
              (then (local.set $son (i32.add (local.get $son) (i32.const 1)))))
            (br_if $placed (i32.ge_u (i32.load (i32.shl (local.get $son) (i32.const 2))) (local.get $key)))
            (i32.store (i32.shl (local.get $i) (i32.const 2)) (i32.load (i32.shl (local.get $son) (i32.const 2))))
            (local.set $sum (i32.add (local.get $sum)
              (i32.load offset=200704 (i32.shl (i32.and (local.get $son) (i32.const 8191)) (i32.const 2)))))
            (local.set $i (local.get $son))
            (br $down)))
        (i32.store (i32.shl (local.get $i) (i32.const 2)) (local.get $key))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $i)))
        (br_if $pop (i32.gt_u (local.tee $n (i32.sub (local.get $n) (i32.const 1))) (i32.const 2)))))
    (local.get $sum)))
