;; Weights say that the inner loop iterates five times: both loops have two versions.
;; change: select branch 1 of f mispredicted 0.5
;; change: weigh-branches branch 2 of f taken 1000 not-taken 4000
;; fill: words 0 to 32768 below 1000
;; call: f 700 2147483648
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $limit i32) (result i32)
    (local $i i32) (local $v i32) (local $count i32) (local $j i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $j (i32.add (i32.and (local.get $v) (i32.const 31)) (i32.const 1)))
        (block $left
          (loop $inner
            (local.set $v (i32.add (i32.mul (local.get $v) (i32.const 1103515245)) (i32.const 12345)))
            (if (i32.lt_u (local.get $v) (local.get $limit))
              (then
                (i32.store offset=32768 (i32.and (local.get $count) (i32.const 1020)) (local.get $v))
                (local.set $count (i32.add (local.get $count) (i32.const 4)))))
            (br_if $left (i32.eqz (local.tee $j (i32.sub (local.get $j) (i32.const 1)))))
            (br $inner)))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $count)))
