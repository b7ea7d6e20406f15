;; A heap of pointers: what is compared lies behind them. Asked for by the load of the key, which stalls.
;; change: speculate load 2 of f weight 0.5
;; fill: words 0 to 200000 below 3000 times 16 plus 204800
;; fill: words 204800 to 252800 below 1000000
;; call: f 3000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $at i32) (local $sum i32)
    (loop $descents
      (local.set $i (i32.and (local.get $sum) (i32.const 15)))
      (loop $down
        (local.set $i (i32.add (i32.shl (local.get $i) (i32.const 1)) (i32.const 1)))
        (local.set $at (i32.shl (local.get $i) (i32.const 2)))
        (local.set $i (select (i32.add (local.get $i) (i32.const 1)) (local.get $i)
          (i32.gt_u (i32.load (i32.load (local.get $at))) (i32.load (i32.load offset=4 (local.get $at))))))
        (br_if $down (i32.lt_u (local.get $i) (i32.const 24000))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $i)))
      (br_if $descents (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
