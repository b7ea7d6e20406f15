;; change: select branch 0 of f mispredicted 0.5
;; call: f 1 7
;; call: f 0 7
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $m i32) (result i32)
    (local $i i32) (local $sum i32)
    (if (local.get $n)
      (then (i32.store (i32.const 8) (local.get $m))))
    (i32.load (i32.const 8))))
