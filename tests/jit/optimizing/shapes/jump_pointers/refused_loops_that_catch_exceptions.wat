;; change: jump-pointers load 0 of f
;; fill: words 64 to 57664 below 1000
;; fill: chain 64 to 57664 by 64
;; call: f 64 -1
(module
  (import "h" "mark" (func $mark (param i32) (result i32)))
  (memory 1)
  (func (export "f") (param $p i32) (param $n i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum)
        (i32.load offset=8 (local.get $p))))
      (block $caught
        (try_table (catch_all $caught) (call $mark (local.get $sum)) (drop)))
      (br_if $l (local.tee $p (i32.load (local.get $p)))))
    (local.get $sum)))
