;; The loop goes round until the last two bits are 0, which LLVM counts in two bits: never 20 times.
;; change: values loop 1 of f usually 20
;; call: f 3000
(module
  (func (export "f") (param $n i32) (result i32)
    (local $j i32) (local $i i32) (local $sum i32)
    (loop $outer
      (local.set $i (i32.shr_u (i32.mul (local.get $j) (i32.const 0x9e3779b1)) (i32.const 7)))
      (loop $inner
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $i)))
        (br_if $inner (i32.and (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 3))))
      (br_if $outer (i32.ne (local.tee $j (i32.add (local.get $j) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
