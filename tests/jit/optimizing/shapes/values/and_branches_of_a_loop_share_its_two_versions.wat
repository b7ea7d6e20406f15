;; change: values division 0 of f usually 97
;; change: select branch 1 of f mispredicted 0.5
;; fill: words 0 to 32768 below 4000000000
;; fill: words 32768 to 32772 below 2
;; call: f 5000 97
;; call: f 5000 98
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $d i32) (result i32)
    (local $i i32) (local $x i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $x (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3))
          (i32.rem_u (local.get $x) (local.get $d))))
        (if (i32.lt_u (local.get $x) (i32.const 0x80000000))
          (then (i32.store offset=40000 (i32.const 0) (local.get $x))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
