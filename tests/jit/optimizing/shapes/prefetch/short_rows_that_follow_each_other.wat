;; for i: for e in off[i]..off[i + 1]: sum += x[column[e]]. Rows have one element in the mean, so a row is over before what it prefetches is
;; there. But the next row begins where it ends, as their offsets say: elements are prefetched past the row's end, not the first of a row
;; some rows ahead.
;; change: prefetch load 3 of f
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
      (local.set $e (i32.load offset=40000 (i32.shl (local.get $i) (i32.const 2))))
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
