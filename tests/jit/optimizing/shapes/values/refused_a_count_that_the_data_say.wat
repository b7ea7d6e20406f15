;; change: values loop 1 of f usually 3
;; fill: words 0 to 32768 below 3
;; call: f 900 6 40000
(module
  (memory 1)
  (func (export "f") (param $m i32) (param $n i32) (param $to i32) (result i32)
    (local $i i32) (local $k i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $m)))
      (loop $rows
        (local.set $sum (i32.const 0))
        (local.set $k (i32.const 0))
        (block $none
          (br_if $none (i32.le_s (local.get $n) (i32.const 0)))
          (loop $row
            (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3))
              (i32.load (i32.shl (i32.add (local.get $i) (local.get $k)) (i32.const 2)))))
            (local.set $k (i32.add (local.get $k) (i32.const 1)))
            (br_if $row (i32.and (local.get $sum) (i32.const 1)))))
        (i32.store (i32.add (local.get $to) (i32.shl (local.get $i) (i32.const 2))) (local.get $sum))
        (br_if $rows (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $m)))))
    (local.get $sum)))
