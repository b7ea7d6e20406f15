;; change: values division 0 of f usually 97
;; call: f 1000 97
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $d i32) (result i32)
    (local $i i32) (local $sum i32)
    (i32.rem_u (local.get $n) (local.get $d))))
