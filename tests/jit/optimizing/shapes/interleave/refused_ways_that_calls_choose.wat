;; change: interleave load 1 of f
;; fill: words 0 to 12000 below 500
;; fill: words 65536 to 69632 below 250 times 16 plus 65536
;; call: f 300
(module
  (import "host" "less" (func $less (param i32) (result i32)))
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $key i32) (local $steps i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $p (i32.const 65536))
        (local.set $steps (i32.const 0))
        (loop $down
          (local.set $sum (i32.load offset=8 (local.get $p)))
          (if (call $less (i32.lt_u (local.get $key) (i32.load offset=8 (local.get $p))))
            (then (local.set $p (i32.load (local.get $p))) (i32.store offset=100 (i32.const 0) (local.get $p)))
            (else (local.set $p (i32.load offset=4 (local.get $p))) (i32.store offset=104 (i32.const 0) (local.get $p))))
          (br_if $down (i32.lt_u (local.tee $steps (i32.add (local.get $steps) (i32.const 1))) (i32.add (i32.const 8) (i32.and (local.get $key) (i32.const 7))))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
