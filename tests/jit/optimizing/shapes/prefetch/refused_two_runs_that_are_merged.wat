;; Whichever run goes on, it does so by a word.
;; change: prefetch load 0 of f
;; fill: words 0 to 200000 below 1000000
;; call: f 20000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $a i32) (local $b i32) (local $sum i32)
    (loop $merge
      (if (i32.lt_u (i32.load (i32.shl (local.get $a) (i32.const 2))) (i32.load offset=100000 (i32.shl (local.get $b) (i32.const 2))))
        (then (local.set $a (i32.add (local.get $a) (i32.const 1))))
        (else (local.set $b (i32.add (local.get $b) (i32.const 1)))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $a)))
      (br_if $merge (i32.lt_u (i32.add (local.get $a) (local.get $b)) (local.get $n))))
    (local.get $sum)))
