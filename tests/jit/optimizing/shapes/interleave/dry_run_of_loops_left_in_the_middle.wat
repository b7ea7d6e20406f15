;; change: interleave load 1 of f
;; fill: words 0 to 12000 below 150000
;; fill: words 65536 to 145536 rising by 7
;; call: f 300 20000
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $size i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $key i32) (local $hi i32) (local $mid i32)
    (block $out
      (loop $l
        (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
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
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $out (i32.eq (local.get $i) (local.get $n)))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (br_if $l (i32.lt_u (local.get $p) (i32.const 19000)))
        (local.set $sum (i32.add (i32.rotl (local.get $sum) (i32.const 3)) (i32.load offset=140000 (i32.shl (local.get $i) (i32.const 2)))))
        (br $l)))
    (local.get $sum)))
