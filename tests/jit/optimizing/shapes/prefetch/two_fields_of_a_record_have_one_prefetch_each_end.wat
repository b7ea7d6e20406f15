;; Two fields that stall and one between them: what the iteration touches of the record is fetched from its ends, once for all of them.
;; The last field begins an inner loop.
;; change: prefetch load 1 of f
;; change: prefetch load 2 of f
;; change: prefetch load 3 of f
;; fill: words 0 to 40000 below 1000 times 40 plus 65536
;; fill: words 65536 to 131000 below 3
;; call: f 9000
(module
  (memory 3)
  (func (export "f") (param $n i32) (result i32) (local $i i32) (local $sum i32) (local $p i32) (local $q i32) (local $end i32)
    (loop $l
      (local.set $p (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $end (i32.add (i32.shl (i32.load (local.get $p)) (i32.const 2)) (i32.add (local.get $p) (i32.const 24))))
      (local.set $sum (i32.add (local.get $sum) (i32.load offset=4 (local.get $p))))
      (local.set $q (i32.add (local.get $p) (i32.const 20)))
      (loop $row
        (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $q))))
        (br_if $row (i32.lt_u (local.tee $q (i32.add (local.get $q) (i32.const 4))) (local.get $end))))
      (i32.store offset=131072 (i32.and (local.get $i) (i32.const 4092)) (local.get $sum))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
