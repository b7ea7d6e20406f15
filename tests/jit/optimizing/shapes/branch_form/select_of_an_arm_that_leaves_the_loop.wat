;; Whether the loop is left is asked where the ways meet. What is stored on the way out is stored, and what is counted behind
;; it is not counted.
;; change: select branch 1 of f mispredicted 0.5
;; fill: words 0 to 32768 below 1000
;; call: f 100 500
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $limit i32) (result i32)
    (local $i i32) (local $v i32) (local $count i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (if (i32.lt_u (local.get $v) (local.get $limit))
          (then
            (i32.store offset=32768 (i32.const 4) (local.get $i))
            (br_if $out (i32.eq (local.get $v) (i32.const 7)))
            (local.set $count (i32.add (local.get $count) (i32.const 1)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $count)))
