;; `while ((m += step) != end)`: counted where the step divides the way, after a turn around 2^32 or without. Each is in strips.
;; change: prefetch load 1 of two
;; change: prefetch load 1 of minus_eight
;; change: prefetch load 1 of twelve
;; fill: words 0 to 65536 below 1000000
;; fill: words 65536 to 131072 below 1000000
;; call: two 10 20010
;; call: minus_eight 80000 0
;; call: twelve 0 148140
;; call: twelve -8 23968
(module
  (memory 4)
  (func (export "two") (param $m i32) (param $end i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536 (i32.and (i32.const 65532)
        (i32.load (i32.and (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 16380)))))))
      (br_if $l (i32.ne (local.get $end) (local.tee $m (i32.add (local.get $m) (i32.const 2))))))
    (i32.add (local.get $sum) (local.get $m)))
  (func (export "minus_eight") (param $m i32) (param $end i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536 (i32.and (i32.const 65532)
        (i32.load (i32.and (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 16380)))))))
      (br_if $l (i32.ne (local.get $end) (local.tee $m (i32.add (local.get $m) (i32.const -8))))))
    (i32.add (local.get $sum) (local.get $m)))
  (func (export "twelve") (param $m i32) (param $end i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=65536 (i32.and (i32.const 65532)
        (i32.load (i32.and (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 16380)))))))
      (br_if $l (i32.ne (local.get $end) (local.tee $m (i32.add (local.get $m) (i32.const 12))))))
    (i32.add (local.get $sum) (local.get $m))))
