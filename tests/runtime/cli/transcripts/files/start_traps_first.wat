(module
  (func $inner unreachable) (func $begin (call $inner)) (start $begin) (func (export "_start")))
