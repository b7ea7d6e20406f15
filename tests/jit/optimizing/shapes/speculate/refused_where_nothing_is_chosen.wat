;; A gather's next address does not wait for what it loads, whatever is chosen by that.
;; change: speculate load 1 of f
;; fill: words 0 to 40000 below 10000
;; call: f 9000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $v i32) (local $sum i32)
    (loop $l
      (local.set $v (i32.load (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
        (select (local.get $v) (i32.const 5) (i32.and (local.get $v) (i32.const 1)))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
