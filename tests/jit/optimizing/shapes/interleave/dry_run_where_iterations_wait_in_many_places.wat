;; change: interleave load 1 of f
;; fill: words 0 to 12000 below 500
;; fill: chain 131072 to 179072 by 16 length 6
;; call: f 300
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $key i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 1)) (i32.const 255)) (i32.const 4))))
        (loop $s0
          (br_if $s0 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 3)) (i32.const 255)) (i32.const 4))))
        (loop $s1
          (br_if $s1 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 5)) (i32.const 255)) (i32.const 4))))
        (loop $s2
          (br_if $s2 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 7)) (i32.const 255)) (i32.const 4))))
        (loop $s3
          (br_if $s3 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 9)) (i32.const 255)) (i32.const 4))))
        (loop $s4
          (br_if $s4 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 11)) (i32.const 255)) (i32.const 4))))
        (loop $s5
          (br_if $s5 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 13)) (i32.const 255)) (i32.const 4))))
        (loop $s6
          (br_if $s6 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 15)) (i32.const 255)) (i32.const 4))))
        (loop $s7
          (br_if $s7 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 17)) (i32.const 255)) (i32.const 4))))
        (loop $s8
          (br_if $s8 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 19)) (i32.const 255)) (i32.const 4))))
        (loop $s9
          (br_if $s9 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 21)) (i32.const 255)) (i32.const 4))))
        (loop $s10
          (br_if $s10 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 23)) (i32.const 255)) (i32.const 4))))
        (loop $s11
          (br_if $s11 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 25)) (i32.const 255)) (i32.const 4))))
        (loop $s12
          (br_if $s12 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 27)) (i32.const 255)) (i32.const 4))))
        (loop $s13
          (br_if $s13 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 29)) (i32.const 255)) (i32.const 4))))
        (loop $s14
          (br_if $s14 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 31)) (i32.const 255)) (i32.const 4))))
        (loop $s15
          (br_if $s15 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 33)) (i32.const 255)) (i32.const 4))))
        (loop $s16
          (br_if $s16 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 35)) (i32.const 255)) (i32.const 4))))
        (loop $s17
          (br_if $s17 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 37)) (i32.const 255)) (i32.const 4))))
        (loop $s18
          (br_if $s18 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 39)) (i32.const 255)) (i32.const 4))))
        (loop $s19
          (br_if $s19 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 41)) (i32.const 255)) (i32.const 4))))
        (loop $s20
          (br_if $s20 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 43)) (i32.const 255)) (i32.const 4))))
        (loop $s21
          (br_if $s21 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 45)) (i32.const 255)) (i32.const 4))))
        (loop $s22
          (br_if $s22 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 47)) (i32.const 255)) (i32.const 4))))
        (loop $s23
          (br_if $s23 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 49)) (i32.const 255)) (i32.const 4))))
        (loop $s24
          (br_if $s24 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 51)) (i32.const 255)) (i32.const 4))))
        (loop $s25
          (br_if $s25 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 53)) (i32.const 255)) (i32.const 4))))
        (loop $s26
          (br_if $s26 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 55)) (i32.const 255)) (i32.const 4))))
        (loop $s27
          (br_if $s27 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 57)) (i32.const 255)) (i32.const 4))))
        (loop $s28
          (br_if $s28 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 59)) (i32.const 255)) (i32.const 4))))
        (loop $s29
          (br_if $s29 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 61)) (i32.const 255)) (i32.const 4))))
        (loop $s30
          (br_if $s30 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 63)) (i32.const 255)) (i32.const 4))))
        (loop $s31
          (br_if $s31 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 65)) (i32.const 255)) (i32.const 4))))
        (loop $s32
          (br_if $s32 (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
