;; Where a search goes depends on what it looks for.
;; change: jump-pointers load 0 of f
;; fill: words 0 to 40000 below 600 times 64
;; fill: words 0 to 64 below 1
;; fill: word 0 is 0
;; call: f 6400 1000
(module
  (memory 1)
  (func (export "f") (param $p i32) (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum)
        (i32.load offset=8 (local.get $p))))
      (local.set $p (select (i32.load (local.get $p)) (i32.load offset=4 (local.get $p))
        (i32.lt_u (local.get $sum) (local.get $n))))
      (br_if $l (i32.and (i32.ne (local.get $p) (i32.const 0)) (i32.lt_u (local.get $sum) (i32.const 100000000)))))
    (local.get $sum)))
