;; Unrolled by two, with addresses that wrap and a count that only the compiler knew to be even.
;; compile: axpy
;; compile: sum
;; fill: words 0 to 65536 below 1000000
;; call: axpy 0.5 0 4 200
;; call: axpy 0.5 0 20000 200
;; call: sum 0 512
;; call: sum 4294967040 512
;; call: sum 0 3
(module
  (memory 1)
  (func (export "axpy") (param $a f32) (param $x i32) (param $y i32) (param $n i32)
    (loop $l
      (f32.store (local.get $y)
        (f32.add (f32.load (local.get $y)) (f32.mul (local.get $a) (f32.load (local.get $x)))))
      (f32.store (i32.add (local.get $y) (i32.const 4))
        (f32.add (f32.load (i32.add (local.get $y) (i32.const 4)))
                 (f32.mul (local.get $a) (f32.load (i32.add (local.get $x) (i32.const 4))))))
      (local.set $x (i32.add (local.get $x) (i32.const 8)))
      (local.set $y (i32.add (local.get $y) (i32.const 8)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 2))))))
  (func (export "sum") (param $p i32) (param $n i32) (result i32)
    (local $s i32)
    (loop $l
      (local.set $s (i32.add (i32.add (i32.load8_u (local.get $p)) (local.get $s))
                             (i32.load8_u (i32.add (local.get $p) (i32.const 1)))))
      (local.set $p (i32.add (local.get $p) (i32.const 2)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 2)))))
    (local.get $s)))
