;; change: values division 0 of f usually 16381
;; fill: words 0 to 32768 below 4000000000
;; call: f 8000 16381
;; call: f 8000 16382
;; call: f 100 0
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $d i64) (result i64)
    (local $i i32) (local $x i64) (local $sum i64)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $x (i64.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 3))
          (i64.rem_u (local.get $x) (local.get $d))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
