;; change: branch choice 0 of f taken 10 not-taken 990 mispredicted 0.01
;; fill: words 0 to 32768 below 1000
;; call: f 3000 77
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $limit i32) (result i32)
    (local $i i32) (local $v i32) (local $count i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (i32.store offset=32768 (i32.shl (local.get $i) (i32.const 2))
          (select (local.get $v) (local.get $limit) (i32.and (local.get $v) (i32.const 64))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $count)))
