;; for (e = off[u]; e < off[u + 1]; ++e): what is stored in the row might be its end, which is loaded in each iteration.
;; change: prefetch load 4 of f
;; fill: words 0 to 16000 below 4000
;; fill: words 40000 to 56004 rising by 7
;; fill: words 80000 to 200000 below 9000
;; fill: words 220000 to 256000 below 1000
;; call: f 4000
(module
  (memory 5)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $u i32) (local $e i32) (local $at i32) (local $sum i32)
    (loop $worklist
      (local.set $u (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))
      (local.set $e (i32.load offset=40000 (local.get $u)))
      (block $done
        (loop $row
          (br_if $done (i32.ge_u (local.get $e) (i32.load offset=40004 (local.get $u))))
          (local.set $at (i32.shl (i32.load offset=80000 (i32.shl (local.get $e) (i32.const 2))) (i32.const 2)))
          (local.set $sum (i32.add (local.get $sum) (i32.load offset=220000 (local.get $at))))
          (i32.store offset=220000 (local.get $at) (local.get $sum))
          (local.set $e (i32.add (local.get $e) (i32.const 1)))
          (br $row)))
      (br_if $worklist (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
