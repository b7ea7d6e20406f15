;; change: speculate load 0 of f
;; change: interleave load 0 of f
;; fill: words 0 to 200000 rising by 7
;; call: f 5000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $low i32) (local $half i32) (local $key i32) (local $sum i32)
    (loop $searches
      (local.set $low (i32.const 0)) (local.set $half (i32.const 32768))
      (local.set $key (i32.rem_u (i32.mul (local.get $n) (i32.const 0x9e3779b1)) (i32.const 350000)))
      (loop $halve
        (local.set $low (i32.add (local.get $low) (select (local.get $half) (i32.const 0)
          (i32.lt_u (i32.load (i32.shl (i32.add (local.get $low) (local.get $half)) (i32.const 2))) (local.get $key)))))
        (br_if $halve (local.tee $half (i32.shr_u (local.get $half) (i32.const 1)))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $low)))
      (br_if $searches (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
