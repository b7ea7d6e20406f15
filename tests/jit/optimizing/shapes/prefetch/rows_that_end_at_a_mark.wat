;; A row that a worklist names ends with 0. Where that is nobody knows ahead, so that only its first element is prefetched.
;; change: prefetch load 3 of f
;; fill: words 0 to 16000 below 4000
;; fill: words 40000 to 56000 below 20000 times 4 plus 80000
;; fill: words 80000 to 160004 below 6
;; fill: words 200000 to 200024 below 1000
;; call: f 4000
(module
  (memory 5)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $p i32) (local $v i32) (local $sum i32)
    (loop $worklist
      (local.set $p (i32.load offset=40000 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2))))
      (block $done
        (loop $row
          (br_if $done (i32.eqz (local.tee $v (i32.load (local.get $p)))))
          (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.load offset=200000 (i32.shl (local.get $v) (i32.const 2)))))
          (local.set $p (i32.add (local.get $p) (i32.const 4)))
          (br $row)))
      (br_if $worklist (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
