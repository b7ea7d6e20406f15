;; Loads that are asked about are kept as they are, which costs what becomes of them otherwise. Refused, the code is made anew without.
;; change: interleave load 0 of f
;; change: interleave load 1 of f
;; change: interleave load 2 of f
;; change: prefetch load 0 of f
;; change: prefetch load 1 of f
;; change: prefetch load 2 of f
;; fill: words 0 to 40000 below 4000000000
;; call: f 3000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (i32.store8 offset=131072 (local.get $i)
        (i32.shr_u (i32.add (i32.add (i32.load8_u (local.get $i)) (i32.load8_u offset=1 (local.get $i)))
                            (i32.load8_u offset=2 (local.get $i))) (i32.const 2)))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (i32.load offset=131076 (i32.const 0))))
