;; change: select branch 0 of f mispredicted 0.5
;; fill: words 0 to 32768 below 1000
;; call: f 100
(module
  (memory 1)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.shl (local.get $i) (i32.const 2)))))
      (i32.store offset=32768 (i32.const 4) (local.get $sum))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $sum) (i32.mul (local.get $n) (i32.const 400)))))
    (local.get $sum)))
