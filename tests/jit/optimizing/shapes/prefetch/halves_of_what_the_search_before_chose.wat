;; Searches for what the search before has found do not go side by side. Both halves are fetched instead.
;; change: prefetch load 0 of f
;; fill: words 0 to 200000 below 1000000
;; call: f 20000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $low i32) (local $rest i32) (local $half i32) (local $key i32) (local $sum i32)
    (loop $searches
      (local.set $low (i32.const 0)) (local.set $rest (i32.const 50000))
      (local.set $key (i32.rem_u (i32.mul (i32.add (local.get $sum) (local.get $n)) (i32.const 0x9e3779b1)) (i32.const 1000000)))
      (loop $halve
        (local.set $half (i32.shr_u (local.get $rest) (i32.const 1)))
        (if (i32.lt_u (i32.load (i32.shl (i32.add (local.get $low) (local.get $half)) (i32.const 2))) (local.get $key))
          (then
            (local.set $low (i32.add (local.get $low) (i32.add (local.get $half) (i32.const 1))))
            (local.set $rest (i32.sub (local.get $rest) (i32.add (local.get $half) (i32.const 1)))))
          (else (local.set $rest (local.get $half))))
        (br_if $halve (local.get $rest)))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $low)))
      (br_if $searches (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
