;; The queue is a vector that gets a new place when it is full. That way a call brings it, and the others leave it where it was: there
;; it is taken to be some iterations ahead.
;; change: prefetch load 4 of f
;; fill: words 40000 to 76004 rising by 5
;; fill: words 80000 to 260000 below 9000
;; fill: word 72000 is 45000
;; call: f 17
(module
  (import "h" "of" (func $grown (param i32) (result i32)))
  (memory 6)
  (func (export "f") (param $root i32) (result i32)
    (local $queue i32) (local $full i32) (local $head i32) (local $tail i32) (local $u i32) (local $e i32) (local $end i32) (local $v i32)
    (i32.store (i32.const 0) (local.get $root))
    (local.set $tail (i32.const 4))
    (local.set $full (i32.const 20000))
    (loop $worklist
      (local.set $u (i32.shl (i32.load (i32.add (local.get $queue) (local.get $head))) (i32.const 2)))
      (local.set $e (i32.load offset=40000 (local.get $u)))
      (local.set $end (i32.load offset=40004 (local.get $u)))
      (block $done
        (br_if $done (i32.ge_u (local.get $e) (local.get $end)))
        (loop $row
          (local.set $v (i32.shl (i32.load offset=80000 (i32.shl (local.get $e) (i32.const 2))) (i32.const 2)))
          (if (i32.eqz (i32.load offset=280000 (local.get $v)))
            (then
              (i32.store offset=280000 (local.get $v) (i32.const 1))
              (if (i32.eq (local.get $tail) (local.get $full))
                (then
                  (local.set $queue (call $grown (i32.const 320000)))
                  (memory.copy (local.get $queue) (i32.const 0) (local.get $tail))
                  (local.set $full (i32.const 72000))))
              (i32.store (i32.add (local.get $queue) (local.get $tail)) (i32.shr_u (local.get $v) (i32.const 2)))
              (local.set $tail (i32.add (local.get $tail) (i32.const 4)))))
          (br_if $row (i32.lt_u (local.tee $e (i32.add (local.get $e) (i32.const 1))) (local.get $end)))))
      (br_if $worklist (i32.lt_u (local.tee $head (i32.add (local.get $head) (i32.const 4))) (local.get $tail))))
    (local.get $tail)))
