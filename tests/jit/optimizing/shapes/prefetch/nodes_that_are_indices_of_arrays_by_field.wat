;; A tree in arrays, one a field: left[node], right[node], key[node]. What is fetched of a further node is the element that stalls; its
;; links are read far from it.
;; change: prefetch load 0 of f
;; change: prefetch load 1 of f
;; fill: words 0 to 262144 below 8190 times 1
;; call: f 0 11
;; call: f 96 3
(module
  (memory 4)
  (func $visit (export "f") (param $node i32) (param $height i32) (result i32)
    (local $at i32)
    (if (i32.eqz (local.get $height)) (then (return (i32.const 1))))
    (local.set $at (i32.shl (local.get $node) (i32.const 2)))
    (i32.add
      (i32.add
        (i32.mul (i32.load offset=131072 (local.get $at)) (i32.const 31))
        (call $visit (i32.load offset=1024 (local.get $at)) (i32.sub (local.get $height) (i32.const 1))))
      (i32.mul
        (call $visit (i32.load offset=65536 (local.get $at)) (i32.sub (local.get $height) (i32.const 1)))
        (i32.const 7)))))
