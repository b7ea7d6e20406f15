;; The same probing as a function of its own: the loop that calls it is asked instead.
;; change: prefetch load 0 of f
;; change: weigh-branches branch 0 of f taken 70 not-taken 30
;; change: weigh-branches branch 1 of f taken 90 not-taken 10
;; fill: words 65536 to 131072 below 4
;; call: f 3000
(module
  (memory 8)
  (func (export "f") (param $p i32) (result i32)
    (local.set $p (i32.and (i32.mul (local.get $p) (i32.const 0x9e3779b1)) (i32.const 0x3fffc)))
    (block $found
      (loop $probe
        (br_if $found (i32.load offset=262144 (local.get $p)))
        (local.set $p (i32.and (i32.add (local.get $p) (i32.const 4)) (i32.const 0x3fffc)))
        (br_if $probe (i32.ne (local.get $p) (i32.const 4)))))
    (local.get $p)))
