;; Two inner loops go round as often as one number says, and are said to go round differently.
;; change: values loop 1 of f usually 4
;; change: values loop 2 of f usually 6
;; fill: words 0 to 32768 below 4000000000
;; call: f 900 4
;; call: f 900 6
(module
  (memory 1)
  (func (export "f") (param $m i32) (param $n i32) (result i32)
    (local $k i32) (local $at i32) (local $sum i32)
    (loop $rows
      (local.set $k (local.get $n))
      (local.set $at (i32.shl (local.get $m) (i32.const 2)))
      (loop $row
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (i32.load (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br_if $row (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (local.set $k (local.get $n))
      (loop $other
        (local.set $sum (i32.xor (i32.mul (local.get $sum) (i32.const 5)) (i32.load (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br_if $other (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (br_if $rows (local.tee $m (i32.sub (local.get $m) (i32.const 1)))))
    (local.get $sum)))
