;; As words are read from a text, but nodes come from an arena: without a call that says so, where they are made is the way seldom gone.
;; change: weigh-branches branch 3 of f taken 3 not-taken 97
;; change: interleave load 2 of f
;; change: interleave load 3 of f
;; fill: words 0 to 40000 below 256
;; call: f 100000 160000
(module
  (memory 64)
  (global $made (mut i32) (i32.const 262144))
  (func (export "f") (param $end i32) (param $word i32) (result i32)
    (local $at i32) (local $length i32) (local $letter i32) (local $p i32) (local $c i32) (local $slot i32) (local $next i32)
    (loop $text
      (block $continue
        (block $ends
          (br_if $ends (i32.lt_u (local.tee $letter (i32.load8_u (local.get $at))) (i32.const 48)))
          (br_if $ends (i32.gt_s (local.get $length) (i32.const 30)))
          (i32.store8 (i32.add (local.get $word) (local.get $length)) (i32.and (local.get $letter) (i32.const 15)))
          (local.set $length (i32.add (local.get $length) (i32.const 1)))
          (br $continue))
        (if (i32.gt_s (local.get $length) (i32.const 0))
          (then
            (local.set $p (i32.const 200000))
            (local.set $c (local.get $word))
            (loop $down
              (local.set $slot (i32.add (local.get $p) (i32.shl (i32.load8_u (local.get $c)) (i32.const 2))))
              (if (i32.eqz (local.tee $next (i32.load (local.get $slot))))
                (then
                  (local.set $next (global.get $made))
                  (global.set $made (i32.add (global.get $made) (i32.const 112)))
                  (i32.store (local.get $slot) (local.get $next))))
              (local.set $p (local.get $next))
              (i32.store offset=108 (local.get $p) (i32.add (i32.load offset=108 (local.get $p)) (i32.const 1)))
              (local.set $c (i32.add (local.get $c) (i32.const 1)))
              (br_if $down (local.tee $length (i32.sub (local.get $length) (i32.const 1)))))
            (local.set $length (i32.const 0)))))
      (br_if $text (i32.ne (local.tee $at (i32.add (local.get $at) (i32.const 1))) (local.get $end))))
    (i32.add (i32.load offset=108 (i32.load (i32.const 200000))) (global.get $made))))
