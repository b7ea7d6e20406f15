;; A hash function that is inlined goes over the eight bytes of a key. It is unrolled, and takes more loads than a slice may have.
;; In f its loop has an exit after the first byte, for an end that lies before the beginning: that way is guessed, and is never gone.
;; In g there is no such exit, and nothing to guess: whole iterations run ahead there, if that is asked for.
;; change: prefetch load 0 of f
;; change: interleave load 0 of f
;; change: prefetch load 0 of g
;; change: interleave load 0 of g
;; fill: words 0 to 40000 below 100000000
;; fill: words 65536 to 131072 below 1000000000
;; call: f 5000
;; call: g 5000
(module
  (memory 4)
  (func $hash (param $p i32) (param $length i32) (result i32)
    (local $h i32) (local $end i32)
    (local.set $h (i32.const 0x811c9dc5))
    (local.set $end (i32.add (local.get $p) (local.get $length)))
    (block $done
      (br_if $done (i32.eqz (local.get $length)))
      (loop $bytes
        (local.set $h (i32.mul (i32.xor (local.get $h) (i32.load8_u (local.get $p))) (i32.const 16777619)))
        (br_if $bytes (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 1))) (local.get $end)))))
    (local.get $h))
  (func $hash_by_index (param $p i32) (param $length i32) (result i32)
    (local $h i32) (local $k i32)
    (local.set $h (i32.const 0x811c9dc5))
    (block $done
      (br_if $done (i32.eqz (local.get $length)))
      (loop $bytes
        (local.set $h (i32.mul (i32.xor (local.get $h) (i32.load8_u (i32.add (local.get $p) (local.get $k)))) (i32.const 16777619)))
        (br_if $bytes (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (local.get $length)))))
    (local.get $h))
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $l
        (local.set $sum (i32.add (local.get $sum)
          (i32.load offset=65536 (i32.shl
            (i32.and (call $hash (i32.shl (local.get $i) (i32.const 3)) (i32.const 8)) (i32.const 0x3fff)) (i32.const 2)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum))
  (func (export "g") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $l
        (local.set $sum (i32.add (local.get $sum)
          (i32.load offset=65536 (i32.shl
            (i32.and (call $hash_by_index (i32.shl (local.get $i) (i32.const 3)) (i32.const 8)) (i32.const 0x3fff)) (i32.const 2)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
