;; Whole vectors are fetched, and the index is a lane of another: what runs ahead reads sixteen bytes in bounds.
;; change: prefetch load 1 of f
;; fill: words 0 to 262144 below 4000000000
;; call: f 246144
(module
  (memory 4)
  (func (export "f") (param $p i32) (result i32)
    (local $four v128) (local $sum v128)
    (loop $l
      (local.set $four (v128.load (local.get $p)))
      (local.set $sum (i32x4.add (local.get $sum) (v128.load offset=65536
        (i32.and (i32x4.extract_lane 2 (i32x4.mul (local.get $four) (i32x4.splat (i32.const 48)))) (i32.const 0xfff0)))))
      (br_if $l (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 16))) (i32.const 262144))))
    (i32.xor (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))
