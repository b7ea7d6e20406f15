;; The hash of a key is a function of its own, as people write it. It is generated in place of its call.
;; change: prefetch load 1 of f
;; fill: words 0 to 40000 below 100000000
;; fill: words 65536 to 131072 below 1000000000
;; call: f 5000
;; call: f 0
(module
  (memory 4)
  (func $hash (param $key i32) (result i32)
    (local.set $key (i32.mul (i32.xor (local.get $key) (i32.shr_u (local.get $key) (i32.const 16))) (i32.const 0x85ebca6b)))
    (local.set $key (i32.mul (i32.xor (local.get $key) (i32.shr_u (local.get $key) (i32.const 13))) (i32.const 0xc2b2ae35)))
    (i32.xor (local.get $key) (i32.shr_u (local.get $key) (i32.const 16))))
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $l
        (local.set $sum (i32.add (local.get $sum)
          (i32.load offset=65536 (i32.shl
            (i32.and (call $hash (i32.load (i32.shl (local.get $i) (i32.const 2)))) (i32.const 0x3fff)) (i32.const 2)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
