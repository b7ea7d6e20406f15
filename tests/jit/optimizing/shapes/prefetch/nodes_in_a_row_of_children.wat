;; A tree whose nodes have their children in a row elsewhere: begin at 8, end at 12, and addresses between. With each child the next
;; three are fetched, none behind the row's end, and of the next one where its own row begins. Asked for at a node's first field and at
;; the row's elements.
;; change: prefetch load 0 of f
;; change: prefetch load 3 of f
;; fill: words 0 to 262144 below 8190 times 32
;; call: f 0 5
;; call: f 96 3
(module
  (memory 4)
  (func $visit (export "f") (param $node i32) (param $height i32) (result i32)
    (local $sum i32) (local $at i32) (local $end i32)
    (local.set $sum (i32.load offset=4 (local.get $node)))
    (if (i32.eqz (local.get $height)) (then (return (local.get $sum))))
    (local.set $at (i32.load offset=8 (local.get $node)))
    (local.set $end (i32.add (local.get $at) (i32.and (i32.load offset=12 (local.get $node)) (i32.const 28))))
    (if (i32.eq (local.get $at) (local.get $end)) (then (return (local.get $sum))))
    (loop $children
      (local.set $sum
        (i32.add (i32.mul (local.get $sum) (i32.const 31))
          (call $visit (i32.load (local.get $at)) (i32.sub (local.get $height) (i32.const 1)))))
      (local.set $at (i32.add (local.get $at) (i32.const 4)))
      (br_if $children (i32.ne (local.get $at) (local.get $end))))
    (local.get $sum)))
