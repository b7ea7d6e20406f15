;; change: interleave load 2 of f
;; fill: words 0 to 12000 below 3000 times 16 plus 131072
;; fill: chain 131072 to 179072 by 16 length 6
;; call: f 300
(module
  (import "host" "head" (func $head (param i32) (result i32)))
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $p (call $head (i32.load (i32.shl (local.get $i) (i32.const 2)))))
        (loop $chain
          (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.load offset=4 (local.get $p))))
          (br_if $chain (local.tee $p (i32.load (local.get $p)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
