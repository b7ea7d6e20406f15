;; A worklist names rows of any length. Within one the hardware sees the stream, but each begins somewhere else.
;; change: prefetch load 3 of f
;; fill: words 0 to 16384 below 4000
;; fill: words 65536 to 81540 below 30000 times 4 plus 131072
;; fill: words 131072 to 252000 below 1000
;; call: f 4000 13
(module
  (memory 8)
  (func (export "f") (param $n i32) (param $long i32) (result i32)
    (local $i i32) (local $v i32) (local $at i32) (local $end i32) (local $sum i32)
    (loop $worklist
      (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $at (i32.load offset=65536 (i32.shl (local.get $v) (i32.const 2))))
      (local.set $end (i32.add (local.get $at) (i32.shl (i32.add (i32.const 1)
        (i32.rem_u (i32.load offset=65540 (i32.shl (local.get $v) (i32.const 2))) (local.get $long))) (i32.const 2))))
      (loop $row
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.load (local.get $at))))
        (br_if $row (i32.ne (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $end))))
      (br_if $worklist (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
