;; change: values division 0 of f usually 0
;; fill: words 0 to 32768 below 4000000000
;; call: f 8000 97
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $d i32) (result i32)
    (local $i i32) (local $x i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $x (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3))
          (i32.div_u (local.get $x) (local.get $d))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
