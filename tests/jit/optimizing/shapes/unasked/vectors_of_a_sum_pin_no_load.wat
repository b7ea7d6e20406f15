;; What keeps a load costs: in a sum each load is needed, and nothing keeps it. Of a last value only the last load is.
;; compile: sum
;; compile: last
;; fill: words 0 to 8000 below 1000
;; call: sum 0 2000
;; call: sum 65400 200
;; call: last 0 2000
;; call: last 65400 200
(module
  (memory 1)
  (func (export "sum") (param $p i32) (param $n i32) (result i32)
    (local $x i32)
    (loop $l
      (local.set $x (i32.add (local.get $x) (i32.load (local.get $p))))
      (local.set $p (i32.add (local.get $p) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $x))
  (func (export "last") (param $p i32) (param $n i32) (result i32)
    (local $x i32)
    (loop $l
      (local.set $x (i32.load (local.get $p)))
      (local.set $p (i32.add (local.get $p) (i32.const 4)))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $x)))
