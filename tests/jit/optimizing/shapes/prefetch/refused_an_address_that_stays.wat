;; The loop stores where it may change what is loaded, so that the load stays in it.
;; change: prefetch load 0 of f
;; fill: words 0 to 4000 below 1000
;; call: f 100 2000
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $p i32) (result i32)
    (local $i i32) (local $v i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (i32.store (i32.shl (local.get $i) (i32.const 2)) (local.get $sum))
        (local.set $sum (i32.add (local.get $sum)
          (i32.load (local.get $p))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
