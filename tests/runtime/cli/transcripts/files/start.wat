(module (memory 1) (func $s (drop (i32.const 1))) (start $s))
