;; Each node says which of its two pointers comes next. The loop writes to nodes, but not to what decides.
;; change: jump-pointers load 0 of f
;; fill: words 64 to 57664 below 900 times 64 plus 64
;; call: f 64 2000
;; call: f 64 2000
;; call: f 64 700
(module
  (memory 4)
  (func (export "f") (param $p i32) (param $n i32) (result i32)
    (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (local.get $p))))
      (i32.store offset=12 (local.get $p) (local.get $sum))
      (if (i32.and (i32.load offset=8 (local.get $p)) (i32.const 64))
        (then (local.set $p (i32.load (local.get $p))) (i32.store offset=16 (local.get $p) (local.get $n)))
        (else (local.set $p (i32.load offset=4 (local.get $p))) (i32.store offset=20 (local.get $p) (local.get $sum))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
