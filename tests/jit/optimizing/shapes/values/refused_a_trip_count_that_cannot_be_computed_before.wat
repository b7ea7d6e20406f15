;; The trip count is a quotient: computed once more, the division might trap.
;; change: values loop 1 of f usually 6
;; fill: words 0 to 32768 below 4000000000
;; call: f 900 60
(module
  (memory 1)
  (func (export "f") (param $m i32) (param $n i32) (result i32)
    (local $k i32) (local $times i32) (local $sum i32)
    (loop $rows
      (local.set $k (i32.const 0))
      (local.set $times (i32.div_u (local.get $n) (i32.and (i32.load (i32.shl (local.get $m) (i32.const 2))) (i32.const 15))))
      (loop $row
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (i32.load (local.get $k))))
        (br_if $row (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (local.get $times))))
      (br_if $rows (local.tee $m (i32.sub (local.get $m) (i32.const 1)))))
    (local.get $sum)))
