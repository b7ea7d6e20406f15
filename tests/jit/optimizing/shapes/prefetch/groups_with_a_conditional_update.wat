;; for i: g = group[key[i]]; the largest value of each group is kept, and out[i] = g. In f the branch needs what is loaded
;; at the group's place. In g that place is gone to only where a flag says so: sum[g] += v[i].
;; change: prefetch load 3 of f
;; change: prefetch load 1 of f
;; change: prefetch load 3 of g
;; fill: words 0 to 20000 below 5000
;; fill: words 20000 to 40000 below 100000
;; fill: words 40000 to 60000 below 4096
;; call: f 5000
;; call: g 5000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $g i32) (local $v i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $l
        (local.set $g (i32.load offset=40000 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2))))
        (local.set $v (i32.load offset=20000 (i32.shl (local.get $i) (i32.const 2))))
        (if (i32.gt_s (local.get $v) (i32.load offset=131072 (i32.shl (local.get $g) (i32.const 2))))
          (then (i32.store offset=131072 (i32.shl (local.get $g) (i32.const 2)) (local.get $v))))
        (i32.store offset=65536 (i32.shl (local.get $i) (i32.const 2)) (local.get $g))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (i32.load offset=131072 (i32.shl (local.get $g) (i32.const 2))))
  (func (export "g") (param $n i32) (result i32)
    (local $i i32) (local $g i32) (local $v i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $l
        (local.set $g (i32.load offset=40000 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2))))
        (local.set $v (i32.load offset=20000 (i32.shl (local.get $i) (i32.const 2))))
        (if (i32.and (local.get $v) (i32.const 1))
          (then (i32.store offset=131072 (i32.shl (local.get $g) (i32.const 2))
            (i32.add (local.get $v) (i32.load offset=131072 (i32.shl (local.get $g) (i32.const 2)))))))
        (i32.store offset=65536 (i32.shl (local.get $i) (i32.const 2)) (local.get $g))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (i32.load offset=131072 (i32.shl (local.get $g) (i32.const 2)))))
