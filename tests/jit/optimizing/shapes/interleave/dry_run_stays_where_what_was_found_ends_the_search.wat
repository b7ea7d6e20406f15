;; change: interleave load 2 of f
;; fill: words 131072 to 179072 below 500
;; fill: words 0 to 12000 below 500
;; fill: words 65536 to 69632 below 3000 times 16 plus 131072
;; fill: chain 131072 to 179072 by 16 length 6
;; call: f 3000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $p i32) (local $key i32) (local $found i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $p (i32.load offset=65536 (i32.and (i32.shl (local.get $key) (i32.const 2)) (i32.const 4092))))
        (block $end
          (loop $chain
            (br_if $end (i32.eqz (local.tee $p (i32.load (local.get $p)))))
            (local.set $found (i32.add (local.get $found) (i32.lt_u (i32.load offset=4 (local.get $p)) (local.get $key))))
            ;; All searches together find so many.
            (br_if $chain (i32.lt_u (local.get $found) (i32.const 7000)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (i32.add (local.get $p) (local.get $found))))
