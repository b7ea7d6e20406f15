;; change: jump-pointers load 1 of f weight 0.6
;; change: jump-pointers load 3 of f weight 0.3
;; fill: words 32768 to 57344 below 700 times 32 plus 1024
;; fill: words 1024 to 24576 below 1000
;; fill: chain 1024 to 24576 by 32 length 9
;; fill: chain 32768 to 57344 by 64
;; call: f 32768
;; call: f 32768
(module
  (memory 1)
  (func (export "f") (param $q i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32)
    (loop $lists
      (local.set $p (i32.load offset=4 (local.get $q)))
      (loop $list
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (local.get $p))))
        (br_if $list (local.tee $p (i32.load (local.get $p)))))
      (local.set $sum (i32.xor (local.get $sum) (i32.load offset=12 (local.get $q))))
      (br_if $lists (local.tee $q (i32.load (local.get $q)))))
    (local.get $sum)))
