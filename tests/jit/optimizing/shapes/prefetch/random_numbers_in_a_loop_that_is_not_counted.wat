;; A shift register, one way of a branch or the other, in a loop whose end the data say. The copy is carried from iteration to
;; iteration, and runs ahead anew where the version is entered.
;; change: prefetch load 0 of f
;; fill: words 0 to 40000 below 1024
;; fill: words 65536 to 131072 below 1000000000
;; call: f 300
;; call: f 9000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $v i32) (local $sum i32)
    (local.set $v (i32.const 99))
    (loop $l
      (if (i32.lt_s (local.get $v) (i32.const 0))
        (then (local.set $v (i32.xor (i32.shl (local.get $v) (i32.const 1)) (i32.const 0x04c11db7))))
        (else (local.set $v (i32.shl (local.get $v) (i32.const 1)))))
      (local.set $sum (i32.add (local.get $sum)
        (i32.and (i32.load (i32.and (i32.shr_u (local.get $v) (i32.const 8)) (i32.const 0xfffc))) (i32.const 3))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $sum) (local.get $n))))
    (local.get $i)))
