;; Two conditions lead to one arm.
;; change: select branch 1 of f mispredicted 0.5
;; change: select branch 2 of f mispredicted 0.5
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
        (block $skip
          (block $do
            (br_if $do (i32.lt_u (local.get $v) (local.get $limit)))
            (br_if $skip (i32.and (i32.load offset=4 (i32.shl (local.get $v) (i32.const 2))) (i32.const 1))))
          (i32.store offset=32768 (i32.const 4) (local.get $i))
          (local.set $count (i32.add (local.get $count) (i32.const 1))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $count)))
