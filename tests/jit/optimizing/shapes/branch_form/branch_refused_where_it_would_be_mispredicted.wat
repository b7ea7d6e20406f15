;; change: branch choice 0 of f mispredicted 0.9
;; fill: words 0 to 32768 below 1000
;; call: f 3000 500
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $limit i32) (result i32)
    (local $i i32) (local $v i32) (local $count i32) (local $w i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $count (i32.add (local.get $count) (i32.and (local.get $v) (i32.const 255))))
        (local.set $count (select (local.get $limit) (local.get $count)
          (i32.gt_u (local.get $count) (local.get $limit))))
        (local.set $w (i32.shr_u (local.get $v) (i32.const 2)))
        (local.set $count (i32.sub (local.get $count)
          (select (local.get $w) (i32.const 0) (i32.le_u (local.get $w) (local.get $count)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $count)))
