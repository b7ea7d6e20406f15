;; A quadtree in a vector: a node has the index of the first of its four children, which lie side by side. A loop adds which one it is.
;; change: prefetch load 0 of f
;; fill: words 0 to 262144 below 8190 times 1
;; call: f 0 5
;; call: f 96 3
(module
  (memory 4)
  (func $visit (export "f") (param $node i32) (param $height i32) (result i32)
    (local $sum i32) (local $at i32) (local $child i32)
    (local.set $at (i32.mul (local.get $node) (i32.const 24)))
    (local.set $sum (i32.load offset=1032 (local.get $at)))
    (if (i32.eqz (local.get $height)) (then (return (local.get $sum))))
    (loop $children
      (local.set $sum
        (i32.add (i32.mul (local.get $sum) (i32.const 31))
          (call $visit (i32.add (i32.load offset=1024 (local.get $at)) (local.get $child))
            (i32.sub (local.get $height) (i32.const 1)))))
      (local.set $child (i32.add (local.get $child) (i32.const 1)))
      (br_if $children (i32.ne (local.get $child) (i32.const 4))))
    (local.get $sum)))
