;; The state of the random numbers is a word of memory that stays where it is, and so is the count of what was found.
;; change: interleave load 2 of f
;; fill: words 65536 to 145536 rising by 7
;; call: f 3000 20000
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $size i32) (result i32)
    (local $i i32) (local $p i32) (local $key i32) (local $hi i32) (local $mid i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (i32.store offset=64 (i32.const 0)
          (i32.add (i32.mul (i32.load offset=64 (i32.const 0)) (i32.const 1664525)) (i32.const 1013904223)))
        (local.set $key (i32.rem_u (i32.load offset=64 (i32.const 0)) (i32.const 140000)))
        (local.set $p (i32.const 0))
        (local.set $hi (local.get $size))
        (block $done
          (br_if $done (i32.eqz (local.get $hi)))
          (loop $halve
            (local.set $mid (i32.shr_u (i32.add (local.get $p) (local.get $hi)) (i32.const 1)))
            (if (i32.lt_u (i32.load offset=65536 (i32.shl (local.get $mid) (i32.const 2))) (local.get $key))
              (then (local.set $p (i32.add (local.get $mid) (i32.const 1))))
              (else (local.set $hi (local.get $mid))))
            (br_if $halve (i32.lt_u (local.get $p) (local.get $hi)))))
        (if (i32.eq (i32.load offset=65536 (i32.shl (local.get $p) (i32.const 2))) (local.get $key))
          (then (i32.store offset=128 (i32.const 0) (i32.add (i32.load offset=128 (i32.const 0)) (i32.const 1)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (i32.load offset=128 (i32.const 0))))
