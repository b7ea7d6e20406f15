;; The last word of memory is a node's key, and where its children's addresses would be is no memory any more. The access comes before
;; the question whether there are children. What leads out of memory is not read.
;; change: prefetch load 0 of f
;; fill: words 0 to 262144 below 8190 times 32
;; call: f 262140 0
;; call: f 262136 0
;; call: f 0 7
(module
  (memory 4 4)
  (func $visit (export "f") (param $node i32) (param $height i32) (result i32)
    (local $sum i32)
    (local.set $sum (i32.load (local.get $node)))
    (if (i32.eqz (local.get $height)) (then (return (local.get $sum))))
    (i32.add
      (i32.add
        (local.get $sum)
        (call $visit (i32.load offset=8 (local.get $node)) (i32.sub (local.get $height) (i32.const 1))))
      (i32.mul
        (call $visit (i32.load offset=12 (local.get $node)) (i32.sub (local.get $height) (i32.const 1)))
        (i32.const 7)))))
