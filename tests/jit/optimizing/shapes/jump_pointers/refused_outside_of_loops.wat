;; change: jump-pointers load 0 of f
;; fill: words 0 to 4000 below 1000
;; call: f 400
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (i32.load (local.get $n))))
