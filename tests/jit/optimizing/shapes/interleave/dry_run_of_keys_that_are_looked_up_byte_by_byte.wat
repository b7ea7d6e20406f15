;; A key of eight bytes is stored at once, and looked up in a radix tree by one byte a step.
;; change: interleave load 2 of f
;; fill: words 0 to 12000 below 1000000
;; fill: words 131072 to 393216 below 240 times 1024 plus 131072
;; call: f 1500 524288
(module
  (memory 9)
  (func (export "f") (param $n i32) (param $key i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $at i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (i64.store (local.get $key) (i64.load (i32.shl (local.get $i) (i32.const 3))))
        (local.set $p (i32.const 131072))
        (local.set $at (i32.const 0))
        (loop $down
          (local.set $p (i32.load (i32.add (local.get $p)
            (i32.shl (i32.load8_u (i32.add (local.get $key) (local.get $at))) (i32.const 2)))))
          (br_if $down (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1)))
                                 (i32.add (i32.and (local.get $p) (i32.const 3072)) (i32.const 3)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (i32.store offset=8 (local.get $key) (local.get $sum))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
