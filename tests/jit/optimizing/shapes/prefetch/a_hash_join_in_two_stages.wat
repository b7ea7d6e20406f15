;; Heads of chains, and the first node of each: the node's address needs the head, which a stage before has fetched.
;; change: prefetch load 1 of f
;; change: prefetch load 2 of f
;; fill: words 0 to 8000 below 500
;; fill: words 65536 to 69632 below 2000 times 8 plus 131072
;; fill: words 131072 to 147072 below 500
;; fill: chain 131072 to 147072 by 8 length 5
;; call: f 2000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $key i32)
    (loop $probe
      (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $p (i32.load offset=65536 (i32.shl
        (i32.shr_u (i32.mul (local.get $key) (i32.const 0x9e3779b1)) (i32.const 22)) (i32.const 2))))
      (block $done
        (loop $chain
          (br_if $done (i32.eqz (local.get $p)))
          (local.set $sum (i32.add (local.get $sum) (i32.eq (i32.load offset=4 (local.get $p)) (local.get $key))))
          (local.set $p (i32.load (local.get $p)))
          (br $chain)))
      (br_if $probe (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
