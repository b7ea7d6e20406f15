;; First child and next sibling: a document. The loop goes on from sibling to sibling, and the function calls itself with each. So a node
;; names two further ones.
;; change: prefetch load 0 of f
;; fill: words 0 to 262144 below 8190 times 32
;; call: f 0 6
(module
  (memory 4)
  (func $visit (export "f") (param $node i32) (param $height i32) (result i32)
    (local $child i32) (local $sum i32) (local $left i32)
    (local.set $sum (i32.load offset=8 (local.get $node)))
    (if (i32.eqz (local.get $height)) (then (return (local.get $sum))))
    (local.set $child (i32.load offset=12 (local.get $node)))
    (local.set $left (i32.const 4))
    (loop $siblings
      (local.set $sum
        (i32.add (i32.mul (local.get $sum) (i32.const 5))
                 (call $visit (local.get $child) (i32.sub (local.get $height) (i32.const 1)))))
      (local.set $child (i32.load offset=16 (local.get $child)))
      (br_if $siblings (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
    (local.get $sum)))
