;; The next address is computed from the last, by no step: a copy of the recurrence runs ahead.
;; change: prefetch load 0 of f
;; fill: words 0 to 40000 below 1024
;; fill: words 65536 to 131072 below 1000000000
;; call: f 2000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $v i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.add (i32.mul (local.get $v) (local.get $v)) (i32.const 12345)))
        (local.set $sum (i32.add (local.get $sum)
          (i32.load (i32.and (i32.shr_u (local.get $v) (i32.const 8)) (i32.const 0xfffc)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
