;; Each iteration looks up where the next one goes: the copy computes what the one before it will have.
;; change: prefetch load 1 of f
;; fill: words 0 to 40000 below 1024
;; fill: words 65536 to 131072 below 1000000000
;; call: f 2000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $next i32) (local $sum i32)
    (local.set $next (i32.load (i32.const 0)))
    (loop $l
      (local.set $sum (i32.add (i32.rotl (local.get $sum) (i32.const 3)) (i32.load offset=65536 (i32.shl (local.get $next) (i32.const 2)))))
      (local.set $next (i32.load offset=4 (i32.shl (local.get $i) (i32.const 2))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
