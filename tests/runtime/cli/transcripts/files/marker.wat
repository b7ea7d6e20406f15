;; Marks three phases and samples five values.
(module $marker
  (import "hindsight_lwp" "insert_event" (func $insert (param i64 i32 i32) (result i32)))
  (import "hindsight_lwp" "value_sample" (func $value (param i64 i32 i32)))
  (import "hindsight_lwp" "name_flags" (func $name (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "build")
  (func $phases
    (drop (call $insert (i64.const 100) (i32.const 1) (i32.const 11)))
    (drop (call $insert (i64.const 200) (i32.const 2) (i32.const 11)))
    (drop (call $insert (i64.const 300) (i32.const 3) (i32.const 12))))
  (func (export "_start") (local $i i32)
    (call $name (i32.const 11) (i32.const 0) (i32.const 5))
    (call $phases)
    (loop $again
      (call $value (i64.const 4096) (i32.const 0) (i32.const 20))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 5))))))
