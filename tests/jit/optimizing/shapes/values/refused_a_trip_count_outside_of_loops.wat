;; change: values loop 0 of f usually 16
;; fill: words 0 to 32768 below 4000000000
;; call: f 16
(module
  (memory 1)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (i32.load (local.get $i))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
