;; A masked value is not needed where the mask is zero: each load has to be made, and the loops become vectors.
;; compile: bytes
;; compile: words
;; compile: doubles
;; call: bytes 65472 65 8192
;; call: bytes 0 64 8192
;; call: words 65520 64 8192
;; call: words 0 64 8192
;; call: doubles 65520 64 8192
;; call: doubles 0 64 8192
(module
  (memory 1)
  (func (export "bytes") (param $p i32) (param $n i32) (param $out i32)
    (loop $l
      (i32.store8 (local.get $out) (select (i32.load8_u (local.get $p)) (i32.const 0)
        (i32.eq (i32.load8_u offset=16384 (local.get $out)) (i32.const 2))))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (local.set $out (i32.add (local.get $out) (i32.const 1)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func (export "words") (param $p i32) (param $n i32) (param $out i32)
    (loop $l
      (i32.store (local.get $out) (select (i32.load (local.get $p)) (i32.const 0)
        (i32.eq (i32.load8_u offset=16384 (local.get $out)) (i32.const 2))))
      (local.set $p (i32.add (local.get $p) (i32.const 4)))
      (local.set $out (i32.add (local.get $out) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func (export "doubles") (param $p i32) (param $n i32) (param $out i32)
    (loop $l
      (f64.store (local.get $out) (select (f64.load (local.get $p)) (f64.const 0)
        (i32.eq (i32.load8_u offset=16384 (local.get $out)) (i32.const 2))))
      (local.set $p (i32.add (local.get $p) (i32.const 8)))
      (local.set $out (i32.add (local.get $out) (i32.const 8)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))
