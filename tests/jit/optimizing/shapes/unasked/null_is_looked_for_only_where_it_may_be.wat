;; Null is looked for only where a reference may be it.
;; compile: param
;; compile: global
;; compile: result
;; compile: known
;; compile: maybe
;; compile: untested
;; call: global
;; call: result
;; call: known
;; call: maybe
(module
  (type $op (func (param i32 i32) (result i32)))
  (elem declare func $add $sub)
  (global $sure (mut (ref $op)) (ref.func $add))
  (global $maybe (mut (ref null $op)) (ref.null $op))
  (func $add (type $op) (i32.add (local.get 0) (local.get 1)))
  (func $sub (type $op) (i32.sub (local.get 0) (local.get 1)))
  (func (export "param") (param (ref $op)) (result i32) (call_ref $op (i32.const 9) (i32.const 4) (local.get 0)))
  (func (export "untested") (param (ref null $op)) (result i32) (call_ref $op (i32.const 9) (i32.const 4) (local.get 0)))
  (func $make (param i32) (result (ref $op))
    (local $f (ref $op))
    (local.set $f (ref.func $add))
    (loop $spin
      (if (local.get 0) (then (local.set 0 (i32.sub (local.get 0) (i32.const 1))) (br $spin))))
    (local.get $f))
  (func (export "global") (result i32) (call_ref $op (i32.const 9) (i32.const 4) (global.get $sure)))
  (func (export "result") (result i32) (call_ref $op (i32.const 9) (i32.const 4) (call $make (i32.const 3))))
  (func (export "known") (result i32) (call_ref $op (i32.const 9) (i32.const 4) (ref.func $sub)))
  (func (export "maybe") (result i32)
    (block $null
      (return (call_ref $op (i32.const 9) (i32.const 4) (br_on_null $null (global.get $maybe)))))
    (i32.const -1)))
