;; change: branch choice 0 of f taken 10 not-taken 990 mispredicted 0.01
;; fill: words 0 to 32768 below 1000
;; call: f 3000 0
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $limit i32) (result i32)
    (local $i i32) (local $v i32) (local $count i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $count (i32.add (i32.const 1) (i32.mul (i32.const 3)
          (select (local.get $v) (local.get $count) (i32.gt_s (local.get $v) (local.get $count))))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $count)))
