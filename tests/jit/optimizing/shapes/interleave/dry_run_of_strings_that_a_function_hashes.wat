;; The hash of a string goes over its letters, in a loop of a function that is inlined. What a prefetch would guess is the hash of one
;; letter, so that whole iterations run ahead.
;; change: prefetch load 1 of f
;; change: interleave load 1 of f
;; fill: words 0 to 40000 below 33554432
;; fill: words 40000 to 60000 below 9000 times 4
;; fill: words 65536 to 131072 below 1000000000
;; call: f 5000
(module
  (memory 4)
  (func $hash (param $p i32) (result i32)
    (local $h i32) (local $c i32)
    (local.set $h (i32.const 0x811c9dc5))
    (block $done
      (loop $bytes
        (br_if $done (i32.eqz (local.tee $c (i32.load8_u (local.get $p)))))
        (local.set $h (i32.mul (i32.xor (local.get $h) (local.get $c)) (i32.const 16777619)))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (br $bytes)))
    (local.get $h))
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $l
        (local.set $sum (i32.add (local.get $sum)
          (i32.load offset=65536 (i32.shl
            (i32.and (call $hash (i32.load offset=40000 (i32.shl (local.get $i) (i32.const 2)))) (i32.const 0x3fff)) (i32.const 2)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
