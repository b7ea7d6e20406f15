;; The loop that goes to the children is had in two versions for a load of its own. What comes before the loop is made anew then, and the
;; children are fetched there all the same.
;; change: prefetch load 0 of f
;; change: prefetch load 2 of f
;; change: weigh-branches branch 0 of f taken 75 not-taken 25
;; fill: words 0 to 262144 below 4090 times 64
;; call: f 64 4
(module
  (memory 8)
  (func $walk (export "f") (param $node i32) (param $height i32) (result i32)
    (local $i i32) (local $sum i32)
    (local.set $sum (i32.load offset=4 (local.get $node)))
    (if (i32.or (i32.eqz (local.get $height)) (i32.and (local.get $sum) (i32.const 64)))
      (then (return (local.get $sum))))
    (local.set $i (i32.const 0))
    (loop $each
      (local.set $sum
        (i32.add
          (i32.load offset=65536 (i32.load offset=32768 (i32.shl (local.get $i) (i32.const 2))))
          (i32.add (i32.mul (local.get $sum) (i32.const 5))
            (call $walk
              (i32.load offset=16 (i32.add (local.get $node) (i32.shl (local.get $i) (i32.const 2))))
              (i32.sub (local.get $height) (i32.const 1))))))
      (br_if $each (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                             (i32.add (i32.const 3) (i32.and (local.get $node) (i32.const 7))))))
    (local.get $sum)))
