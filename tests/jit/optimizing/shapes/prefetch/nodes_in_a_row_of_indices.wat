;; A search that goes through a graph by calling itself: vertices are elements of 8 bytes, which say where their neighbors' row begins
;; and how many there are, and rows hold indices. Counted downwards.
;; change: prefetch load 0 of f
;; bounds: explicit
;; fill: words 0 to 262144 below 8190 times 4
;; call: f 0 5
;; call: f 96 3
(module
  (memory 4)
  (func $visit (export "f") (param $vertex i32) (param $height i32) (result i32)
    (local $sum i32) (local $at i32) (local $left i32)
    (local.set $at (i32.load offset=1024 (i32.shl (local.get $vertex) (i32.const 3))))
    (local.set $left (i32.and (i32.load offset=1028 (i32.shl (local.get $vertex) (i32.const 3))) (i32.const 7)))
    (local.set $sum (local.get $at))
    (if (i32.eqz (local.get $height)) (then (return (local.get $sum))))
    (if (i32.eqz (local.get $left)) (then (return (local.get $sum))))
    (loop $neighbors
      (local.set $sum
        (i32.add (i32.mul (local.get $sum) (i32.const 31))
          (call $visit (i32.load (local.get $at)) (i32.sub (local.get $height) (i32.const 1)))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $neighbors (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    (local.get $sum)))
