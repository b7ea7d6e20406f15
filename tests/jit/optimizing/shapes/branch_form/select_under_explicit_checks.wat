;; Bounds checks leave the loop for good: they are exits of the arms that access memory.
;; bounds: explicit
;; change: select branch 1 of f mispredicted 0.4
;; change: select branch 2 of f mispredicted 0.4
;; change: select branch 3 of f mispredicted 0.4
;; fill: words 0 to 16384 below 400
;; call: f 3000 300
;; call: f 300 400
;; call: f 20000 500
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $limit i32) (result i32)
    (local $i i32) (local $v i32) (local $w i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (block $next
          (block $both
            (br_if $next (i32.ge_u (local.get $v) (local.get $limit)))
            (local.set $w (i32.load offset=4 (i32.shl (local.get $v) (i32.const 2))))
            (br_if $both (i32.and (local.get $w) (i32.const 1)))
            (i32.store offset=32768 (i32.shl (local.get $v) (i32.const 2)) (local.get $sum))
            (local.set $w (i32.load16_u offset=8 (i32.shl (local.get $w) (i32.const 2))))
            (br_if $next (i32.and (local.get $w) (i32.const 2))))
          (local.set $sum (i32.add (i32.add (i32.mul (local.get $sum) (i32.const 7)) (local.get $i)) (i32.load offset=32768 (i32.shl (local.get $w) (i32.const 2)))))
          (i32.store8 offset=49152 (local.get $w) (local.get $sum)))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))

