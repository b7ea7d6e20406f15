;; A vector of vectors: for i: {begin, end} = rows[queue[i]]; for (p = begin; p != end; ++p) sum += dist[*p]. Rows lie anywhere, and
;; end where the pointer is just as large. Some have no element.
;; change: prefetch load 4 of f
;; fill: words 0 to 16000 below 4000
;; fill: words 16000 to 48000 rising by 16
;; fill: words 131072 to 260000 below 9000
;; fill: words 300000 to 336000 below 1000
;; call: f 4000 0
;; call: f 4000 13
(module
  (memory 6)
  (func (export "f") (param $n i32) (param $most i32) (result i32)
    (local $i i32) (local $row i32) (local $p i32) (local $end i32) (local $sum i32)
    (loop $worklist
      (local.set $row (i32.add (i32.const 16000) (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 3))))
      (local.set $p (i32.add (i32.const 131072) (i32.load (local.get $row))))
      (local.set $end (i32.add (local.get $p) (i32.and (i32.load offset=4 (local.get $row)) (i32.shl (local.get $most) (i32.const 4)))))
      (block $done
        (br_if $done (i32.eq (local.get $p) (local.get $end)))
        (loop $row
          (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
            (i32.load offset=300000 (i32.shl (i32.load (local.get $p)) (i32.const 2)))))
          (br_if $row (i32.ne (local.tee $p (i32.add (local.get $p) (i32.const 4))) (local.get $end)))))
      (br_if $worklist (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
