;; What is stored may be the vector's pointer to its elements, for all that the compiler knows. So it is loaded again in each
;; iteration, and carried into the next.
;; change: prefetch load 2 of f
;; fill: words 0 to 16384 below 4000
;; fill: word 16400 is 65536
;; fill: words 65536 to 81536 below 3000
;; call: f 4000 0
;; call: f 4000 80
(module
  (memory 8)
  (func (export "f") (param $n i32) (param $away i32) (result i32)
    (local $i i32) (local $v i32) (local $table i32) (local $sum i32)
    (local.set $table (i32.load (i32.const 16400)))
    (loop $l
      (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
        (i32.load (i32.add (local.get $table) (i32.shl (local.get $v) (i32.const 2))))))
      (if (i32.and (local.get $v) (i32.const 1))
        (then
          (i32.store (i32.add (i32.const 16384) (i32.rem_u (local.get $v) (i32.const 4))) (local.get $sum))
          (i32.store (i32.const 16400) (i32.add (i32.const 65536) (local.get $away)))
          (local.set $table (i32.load (i32.const 16400)))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
