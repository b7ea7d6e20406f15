;; Halves of an array: the function calls itself with places that it computes, and no load says where it goes.
;; change: prefetch load 0 of f
;; fill: words 0 to 65536 below 1000
;; call: f 0 65536
(module
  (memory 4)
  (func $sum (export "f") (param $begin i32) (param $end i32) (result i32)
    (local $middle i32)
    (local.set $middle
      (i32.add (local.get $begin)
        (i32.and (i32.shr_u (i32.sub (local.get $end) (local.get $begin)) (i32.const 1)) (i32.const -4))))
    (if (i32.eq (local.get $middle) (local.get $begin)) (then (return (i32.load (local.get $begin)))))
    (i32.add
      (i32.mul (call $sum (local.get $begin) (local.get $middle)) (i32.const 3))
      (call $sum (local.get $middle) (local.get $end)))))
