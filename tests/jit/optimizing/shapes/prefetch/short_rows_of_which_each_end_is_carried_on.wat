;; The same where the loop around carries each end on as the next begin.
;; change: prefetch load 2 of f
;; change: weigh-branches branch 0 of f taken 2000 not-taken 2000
;; fill: words 40000 to 90000 rising by 1
;; fill: words 90000 to 190000 below 10000
;; fill: words 200000 to 240000 below 1000
;; call: f 3000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $e i32) (local $end i32)
    (loop $rows
      (local.set $e (local.get $end))
      (local.set $end (i32.load offset=40004 (i32.shl (local.get $i) (i32.const 2))))
      (block $done
        (loop $row
          (br_if $done (i32.ge_u (local.get $e) (local.get $end)))
          (local.set $sum (i32.add (local.get $sum)
            (i32.load offset=200000 (i32.shl (i32.load offset=90000 (i32.shl (local.get $e) (i32.const 2))) (i32.const 2)))))
          (local.set $e (i32.add (local.get $e) (i32.const 1)))
          (br $row)))
      (br_if $rows (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
