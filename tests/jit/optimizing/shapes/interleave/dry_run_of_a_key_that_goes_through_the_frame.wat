;; The key is passed by reference, as C++ passes it: stored in the frame, and loaded from there by the search, which is inlined.
;; change: interleave load 3 of f
;; fill: words 0 to 12000 below 5000
;; fill: words 65536 to 69632 below 3000 times 16 plus 131072
;; fill: chain 131072 to 179072 by 16 length 6
;; call: f 3000 196608
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $frame i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $key i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (i32.store offset=12 (local.get $frame) (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $key (i32.load (i32.add (local.get $frame) (i32.const 12))))
        (local.set $p (i32.load offset=65536 (i32.and (i32.shl (local.get $key) (i32.const 2)) (i32.const 4092))))
        (block $found
          (loop $chain
            (br_if $found (i32.eq (i32.load offset=4 (local.get $p)) (local.get $key)))
            (br_if $chain (local.tee $p (i32.load (local.get $p))))))
        (i32.store offset=8 (local.get $p) (i32.add (i32.load offset=8 (local.get $p)) (i32.const 1)))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
