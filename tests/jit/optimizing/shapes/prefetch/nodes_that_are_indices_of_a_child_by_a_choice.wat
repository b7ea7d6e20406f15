;; A tree in an array that lies where the program was linked to, with two children in an array each: which one comes first depends on
;; the key. Both are fetched. Bounds are checked in code.
;; change: prefetch load 0 of f
;; bounds: explicit
;; fill: words 0 to 262144 below 8190 times 1
;; call: f 0 11 4000
;; call: f 96 3 100
(module
  (memory 4)
  (func $visit (export "f") (param $node i32) (param $height i32) (param $key i32) (result i32)
    (local $at i32) (local $far i32) (local $value i32)
    (if (i32.eqz (local.get $height)) (then (return (i32.const 1))))
    (local.set $at (i32.shl (local.get $node) (i32.const 4)))
    (local.set $value (i32.load offset=1024 (local.get $at)))
    (local.set $far (i32.shl (i32.gt_s (local.get $key) (local.get $value)) (i32.const 2)))
    (i32.add
      (i32.add
        (i32.mul (local.get $value) (i32.const 31))
        (call $visit (i32.load offset=1028 (i32.add (local.get $at) (local.get $far)))
          (i32.sub (local.get $height) (i32.const 1)) (local.get $key)))
      (i32.mul
        (call $visit (i32.load offset=1028 (i32.add (local.get $at) (i32.xor (local.get $far) (i32.const 4))))
          (i32.sub (local.get $height) (i32.const 1)) (local.get $key))
        (i32.const 7)))))
