;; A node is made where a chain ends, by calls with a decision in between. The dry run ends there: nobody comes to that decision.
;; change: interleave load 2 of f
;; fill: words 0 to 12000 below 64 times 16 plus 1
;; fill: words 65536 to 69632 below 3000 times 16 plus 131072
;; fill: chain 131072 to 179072 by 16 length 6
;; call: f 3000
(module
  (import "host" "make" (func $make (param i32) (result i32)))
  (import "host" "clear" (func $clear (param i32 i32) (result i32)))
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $next i32) (local $key i32) (local $free i32)
    (local.set $free (i32.const 180000))
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $p (i32.load offset=65536 (i32.and (i32.shl (local.get $key) (i32.const 2)) (i32.const 4092))))
        (block $found
          (loop $chain
            (local.set $next (i32.load (local.get $p)))
            (if (i32.eqz (local.get $next))
              (then
                (br_if $out (i32.eqz (local.tee $next (call $make (local.get $free)))))
                (if (i32.and (i32.load8_u offset=4 (local.get $next)) (i32.const 3))
                  (then (drop (call $clear (local.get $next) (i32.const 0)))))
                (local.set $free (i32.add (local.get $free) (i32.const 16)))
                (i32.store offset=4 (local.get $next) (local.get $key))
                (i32.store (local.get $p) (local.get $next))))
            (br_if $found (i32.eq (i32.load offset=4 (local.get $next)) (local.get $key)))
            (local.set $p (local.get $next))
            (br $chain)))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
