(module $functions
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "both") (param f64) (result f64 i64) (local.get 0) (i64.const -5))
  (func $inner (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0)))
  (func $middle (param i32) (result i32) (i32.add (call $inner (local.get 0)) (i32.const 1)))
  (func (export "divide") (param i32) (result i32) (i32.add (call $middle (local.get 0)) (i32.const 1)))
  (func (export "forever") (loop $l (br $l)))
  (memory (export "memory") 1))
