;; What its iterations store may change the list, but a dry run would follow the same one each time.
;; change: interleave load 1 of f
;; fill: chain 64 to 57664 by 64
;; call: f 64 20
(module
  (memory 4)
  (func (export "f") (param $list i32) (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32)
    (loop $l
      (local.set $p (local.get $list))
      (loop $chain
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.load offset=4 (local.get $p))))
        (br_if $chain (local.tee $p (i32.load (local.get $p)))))
      (i32.store offset=4 (i32.add (local.get $list) (i32.shl (local.get $i) (i32.const 6))) (local.get $sum))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
