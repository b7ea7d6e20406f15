;; The bytes of a record go through a table, each look-up with what the one before gave. The byte's own address is a stream.
;; change: interleave load 1 of f
;; fill: words 0 to 12000 below 1000
;; fill: words 65536 to 66560 below 4000000000
;; fill: words 70000 to 110000 below 4000000000
;; call: f 1000 29
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $size i32) (result i32)
    (local $i i32) (local $v i32) (local $sum i32) (local $p i32) (local $key i32) (local $c i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $c (i32.const -1))
        (local.set $p (i32.const 0))
        (loop $bytes
          (local.set $c (i32.xor (i32.shr_u (local.get $c) (i32.const 8))
            (i32.load offset=65536 (i32.shl (i32.and (i32.const 255) (i32.xor (local.get $c)
              (i32.load8_u offset=70000 (i32.add (local.get $p) (i32.shl (local.get $key) (i32.const 5)))))) (i32.const 2)))))
          (br_if $bytes (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 1))) (local.get $size))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $c)))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
