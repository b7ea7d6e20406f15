;; change: interleave load 1 of f
;; fill: words 0 to 12000 below 500
;; fill: chain 131072 to 179072 by 16 length 6
;; call: f 300
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $key i32) (local $last i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.add (local.get $key) (local.get $last)) (i32.const 255)) (i32.const 4))))
        (loop $first
          (br_if $first (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 255)) (local.get $key)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (local.set $key (i32.add (local.get $key) (local.get $last)))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (i32.mul (local.get $key) (i32.const 77)) (i32.const 255)) (i32.const 4))))
        (loop $second
          (br_if $second (i32.and (i32.ne (local.tee $p (i32.load (local.get $p))) (i32.const 0))
            (i32.lt_u (i32.and (local.get $p) (i32.const 511)) (local.get $key)))))
        (local.set $last (local.get $p))
        (i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
