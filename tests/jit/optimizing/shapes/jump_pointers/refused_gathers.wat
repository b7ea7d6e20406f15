;; change: jump-pointers load 1 of f
;; fill: words 0 to 40000 below 1000
;; call: f 0 6400
(module
  (memory 1)
  (func (export "f") (param $p i32) (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum)
        (i32.load (i32.load (local.get $n)))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 64)))))
    (local.get $sum)))
