;; A tree whose nodes have the address of the first of two children, which lie side by side.
;; change: prefetch load 0 of f
;; fill: words 0 to 262144 below 8000 times 32
;; call: f 0 11
;; call: f 96 3
(module
  (memory 4)
  (func $visit (export "f") (param $node i32) (param $height i32) (result i32)
    (if (i32.eqz (local.get $height)) (then (return (i32.const 1))))
    (i32.add
      (i32.add
        (i32.mul (i32.load offset=12 (local.get $node)) (i32.const 31))
        (call $visit (i32.load offset=8 (local.get $node)) (i32.sub (local.get $height) (i32.const 1))))
      (i32.mul
        (call $visit (i32.add (i32.load offset=8 (local.get $node)) (i32.const 64)) (i32.sub (local.get $height) (i32.const 1)))
        (i32.const 7)))))
