;; Which pointer of the node is followed is chosen, but the pointer has to be loaded all the same.
;; change: speculate load 0 of f
;; change: speculate load 1 of f
;; fill: words 0 to 160000 below 9000 times 16 plus 16
;; call: f 500
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $p i32) (local $k i32) (local $sum i32)
    (loop $walks
      (local.set $p (i32.shl (local.get $n) (i32.const 4)))
      (local.set $k (i32.add (i32.const 1) (i32.and (local.get $n) (i32.const 31))))
      (loop $walk
        (local.set $p (i32.load (i32.add (local.get $p) (select (i32.const 4) (i32.const 8)
          (i32.gt_u (i32.load (local.get $p)) (i32.const 70000))))))
        (br_if $walk (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
      (br_if $walks (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
