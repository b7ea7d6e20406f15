;; One loop follows two lists: it remembers the one that stalls more.
;; change: jump-pointers load 0 of f weight 0.6
;; change: jump-pointers load 1 of f weight 0.3
;; fill: words 1024 to 57344 below 1000
;; fill: chain 1024 to 24576 by 32
;; fill: chain 32768 to 57344 by 32
;; call: f 1024 32768
;; call: f 1024 32768
(module
  (memory 1)
  (func (export "f") (param $p i32) (param $q i32) (result i32)
    (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=8 (local.get $p))))
      (local.set $sum (i32.xor (local.get $sum) (i32.load offset=12 (local.get $q))))
      (local.set $q (i32.load (local.get $q)))
      (br_if $l (local.tee $p (i32.load (local.get $p)))))
    (local.get $sum)))
