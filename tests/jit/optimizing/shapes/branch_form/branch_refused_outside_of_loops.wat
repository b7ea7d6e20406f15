;; change: branch choice 0 of f mispredicted 0.01
;; call: f 1 7
;; call: f 0 7
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $m i32) (result i32)
    (local $i i32) (local $sum i32)
    (select (local.get $n) (i32.load (local.get $m)) (i32.and (local.get $m) (i32.const 1)))))
