;; A tree in a vector, gone through by recursion: what leads to a node is its index, and where the vector lies is read anew in each call.
;; Nodes of 24 bytes. The address of a further node is that of the access and so many times 24 as the indices are apart.
;; change: prefetch load 1 of f
;; fill: words 0 to 262144 below 8190 times 1
;; fill: word 0 is 4096
;; call: f 0 11
;; call: f 96 3
(module
  (memory 4)
  (func $visit (export "f") (param $node i32) (param $height i32) (result i32)
    (local $at i32)
    (if (i32.eqz (local.get $height)) (then (return (i32.const 1))))
    (local.set $at (i32.add (i32.load (i32.const 0)) (i32.mul (local.get $node) (i32.const 24))))
    (i32.add
      (i32.add
        (i32.mul (i32.load offset=20 (local.get $at)) (i32.const 31))
        (call $visit (i32.load offset=8 (local.get $at)) (i32.sub (local.get $height) (i32.const 1))))
      (i32.mul
        (call $visit
          (i32.load offset=12 (i32.add (i32.load (i32.const 0)) (i32.mul (local.get $node) (i32.const 24))))
          (i32.sub (local.get $height) (i32.const 1)))
        (i32.const 7)))))
