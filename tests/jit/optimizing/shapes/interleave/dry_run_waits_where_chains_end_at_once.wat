;; Buckets of a hash join: nearly all chains end after their first node. What says so is how often their loop goes round, which no
;; branch but its last one knows. A prefetch finds what a node holds, and what leads to the next node is beside that.
;; change: interleave load 3 of f
;; change: interleave load 2 of f
;; change: prefetch load 2 of f
;; change: weigh-branches branch 1 of f taken 2 not-taken 98
;; fill: words 131072 to 179072 below 500
;; fill: words 0 to 12000 below 500
;; fill: words 65536 to 69632 below 3000 times 16 plus 131072
;; fill: chain 131072 to 179072 by 16 length 1
;; call: f 3000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $key i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $p (i32.load offset=65536 (i32.and (i32.shl (local.get $key) (i32.const 2)) (i32.const 4092))))
        (loop $chain
          (local.set $sum (i32.add (local.get $sum) (i32.lt_u (i32.load offset=4 (local.get $p)) (local.get $key))))
          (br_if $chain (local.tee $p (i32.load (local.get $p)))))
        (i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $sum))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
