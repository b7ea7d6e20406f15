;; Scalar loops as clang writes them become vectors.
;; compile: axpy
;; compile: bytes
;; compile: row
;; fill: words 0 to 65536 below 1000000
;; call: axpy 0.5 0 20000 1000
;; call: axpy 0.5 131072 131076 100
;; call: bytes 3 10007
;; call: bytes -1 2
;; call: row 0 40000 3 1000
(module
  (memory 16)
  (func (export "axpy") (param $a f32) (param $x i32) (param $y i32) (param $n i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (f32.store (local.get $y)
          (f32.add (f32.load (local.get $y)) (f32.mul (local.get $a) (f32.load (local.get $x)))))
        (local.set $x (i32.add (local.get $x) (i32.const 4)))
        (local.set $y (i32.add (local.get $y) (i32.const 4)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))
  (func (export "bytes") (param $p i32) (param $n i32) (result i32)
    (local $s i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $s (i32.add (local.get $s) (i32.load8_u (local.get $p))))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (local.get $s))
  (func (export "row") (param $c i32) (param $b i32) (param $x i32) (param $n i32)
    (local $i i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (i32.store (i32.add (local.get $c) (i32.shl (local.get $i) (i32.const 2)))
          (i32.add (i32.load (i32.add (local.get $c) (i32.shl (local.get $i) (i32.const 2))))
            (i32.mul (local.get $x) (i32.load (i32.add (local.get $b) (i32.shl (local.get $i) (i32.const 2)))))))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))))
