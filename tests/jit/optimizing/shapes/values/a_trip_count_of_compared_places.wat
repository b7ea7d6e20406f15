;; change: values loop 1 of f usually 4
;; fill: words 0 to 32768 below 4000000000
;; call: f 2000 4
;; call: f 2000 5
(module
  (memory 1)
  (func (export "f") (param $m i32) (param $n i32) (result i32)
    (local $end i32) (local $at i32) (local $sum i32)
    (loop $rows
      (local.set $at (i32.and (i32.mul (local.get $m) (i32.const 48)) (i32.const 0x7fff)))
      (local.set $end (i32.add (local.get $at) (i32.shl (local.get $n) (i32.const 2))))
      (loop $row
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (i32.load (local.get $at))))
        (br_if $row (i32.ne (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $end))))
      (br_if $rows (local.tee $m (i32.sub (local.get $m) (i32.const 1)))))
    (local.get $sum)))
