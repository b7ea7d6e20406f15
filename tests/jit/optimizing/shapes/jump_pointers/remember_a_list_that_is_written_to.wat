;; Nodes count visits, their next pointers are loaded in both arms of a branch, and the loop has a second way out.
;; change: jump-pointers load 0 of f
;; fill: chain 64 to 57664 by 64
;; call: f 64
;; call: f 64
;; call: f 64
(module
  (memory 4)
  (func (export "f") (param $p i32) (result i32)
    (local $sum i32) (local $next i32)
    (block $out
      (loop $l
        (i32.store offset=4 (local.get $p) (i32.add (i32.load offset=4 (local.get $p)) (i32.const 1)))
        (if (i32.and (local.get $sum) (i32.const 1))
          (then
            (i32.store offset=8 (local.get $p) (local.get $sum))
            (local.set $next (i32.load (local.get $p)))
            (local.set $sum (i32.add (local.get $sum) (i32.const 3))))
          (else
            (local.set $next (i32.load (local.get $p)))
            (i32.store offset=12 (local.get $p) (i32.xor (local.get $sum) (local.get $next)))
            (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 5)) (i32.load offset=16 (local.get $p))))))
        (br_if $out (i32.eq (local.get $sum) (i32.const 12345678)))
        (br_if $l (local.tee $p (local.get $next)))))
    (local.get $sum)))
