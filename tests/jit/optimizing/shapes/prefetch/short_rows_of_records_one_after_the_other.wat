;; for i: for (n = length[i]; n != 0; --n, ++e) sum += x[column[e]]. The loop around takes no offset: each row begins where the one before has ended.
;; change: prefetch load 2 of f
;; change: weigh-branches branch 0 of f taken 2000 not-taken 2000
;; fill: words 40000 to 90000 below 3
;; fill: words 90000 to 190000 below 10000
;; fill: words 200000 to 240000 below 1000
;; call: f 3000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $e i32) (local $left i32)
    (loop $rows
      (local.set $left (i32.load offset=40000 (i32.shl (local.get $i) (i32.const 2))))
      (block $done
        (loop $row
          (br_if $done (i32.eqz (local.get $left)))
          (local.set $sum (i32.add (local.get $sum)
            (i32.load offset=200000 (i32.shl (i32.load offset=90000 (i32.shl (local.get $e) (i32.const 2))) (i32.const 2)))))
          (local.set $e (i32.add (local.get $e) (i32.const 1)))
          (local.set $left (i32.sub (local.get $left) (i32.const 1)))
          (br $row)))
      (br_if $rows (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
