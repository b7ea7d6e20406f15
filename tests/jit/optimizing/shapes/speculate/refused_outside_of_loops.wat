;; change: speculate load 0 of f
;; fill: words 0 to 400 below 90
;; call: f 40
(module
  (memory 1)
  (func (export "f") (param $i i32) (result i32)
    (i32.load (i32.shl (select (i32.const 3) (local.get $i)
      (i32.load (i32.shl (local.get $i) (i32.const 2)))) (i32.const 2)))))
