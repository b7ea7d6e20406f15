;; Each runs ahead of the next, a stage each.
;; change: prefetch load 4 of f
;; fill: words 0 to 262144 below 4096
;; call: f 2000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $v i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $sum (i32.add (local.get $sum)
          (i32.load offset=40000 (i32.shl
            (i32.load offset=80000 (i32.shl
              (i32.load offset=120000 (i32.shl
                (i32.load offset=160000 (i32.shl
                  (i32.load (i32.shl (local.get $i) (i32.const 2)))
                  (i32.const 2)))
                (i32.const 2)))
              (i32.const 2)))
            (i32.const 2)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
