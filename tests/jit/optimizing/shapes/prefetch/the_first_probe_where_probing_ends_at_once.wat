;; Open addressing: nearly all look-ups end at the first place. To run ahead along the places that follow comes too late; where probing
;; begins is known to the loop over the keys, by a guess: a table that is full would be another one by then.
;; change: prefetch load 1 of f
;; change: weigh-branches branch 1 of f taken 70 not-taken 30
;; change: weigh-branches branch 2 of f taken 90 not-taken 10
;; fill: words 0 to 12000 below 100000
;; fill: words 65536 to 131072 below 4
;; call: f 3000
(module
  (memory 8)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $p (i32.and (i32.mul (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 0x9e3779b1)) (i32.const 0x3fffc)))
        (block $found
          (loop $probe
            (br_if $found (i32.load offset=262144 (local.get $p)))
            (local.set $p (i32.and (i32.add (local.get $p) (i32.const 4)) (i32.const 0x3fffc)))
            (br_if $probe (i32.ne (local.get $p) (i32.const 4)))))
        (local.set $sum (i32.add (local.get $sum) (local.get $p)))
        (i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $sum))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
