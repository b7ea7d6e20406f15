;; count[key[i]]++ in f, count[hash(key[i])] += w[i] in g. The place is loaded, changed and stored: both are asked for.
;; change: prefetch load 1 of f
;; change: prefetch store 0 of f
;; change: prefetch load 1 of g
;; change: prefetch store 0 of g
;; fill: words 0 to 40000 below 4096
;; fill: words 40000 to 80000 below 1000
;; call: f 5000
;; call: g 5000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $at i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $l
        (local.set $at (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))
        (i32.store offset=131072 (local.get $at) (i32.add (i32.load offset=131072 (local.get $at)) (i32.const 1)))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (i32.load offset=131072 (local.get $at)))
  (func (export "g") (param $n i32) (result i32)
    (local $i i32) (local $at i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $l
        (local.set $at (i32.shl (i32.shr_u (i32.mul (i32.load (i32.shl (local.get $i) (i32.const 2)))
          (i32.const 0x9e3779b1)) (i32.const 20)) (i32.const 2)))
        (i32.store offset=131072 (local.get $at) (i32.add (i32.load offset=131072 (local.get $at))
          (i32.load offset=40000 (i32.shl (local.get $i) (i32.const 2)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (i32.load offset=131072 (local.get $at))))
