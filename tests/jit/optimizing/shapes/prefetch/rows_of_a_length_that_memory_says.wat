;; Rows of 8, one length for all: each row is in strips.
;; change: prefetch load 2 of f
;; fill: words 0 to 40000 below 16384
;; fill: words 65536 to 131072 below 1000000000
;; fill: word 262140 is 8
;; call: f 7
;; call: f 8000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $row i32) (local $end i32)
    (block $out
      (br_if $out (i32.lt_u (local.get $n) (i32.const 8)))
      (loop $rows
        (local.set $row (i32.const 0))
        (local.set $end (i32.add (local.get $i) (i32.load (i32.const 262140))))
        (loop $l
          (local.set $row (i32.add (i32.mul (local.get $row) (i32.const 31))
            (i32.load offset=65536 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))))
          (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $end))))
        (local.set $sum (i32.xor (i32.rotl (local.get $sum) (i32.const 1)) (local.get $row)))
        (br_if $rows (i32.le_u (i32.add (local.get $i) (i32.const 8)) (local.get $n)))))
    (local.get $sum)))
