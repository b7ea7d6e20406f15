;; A skip list: on each level the search goes on where it was on the level above.
;; change: interleave load 2 of f
;; fill: words 0 to 12000 below 3000
;; fill: words 65536 to 113536 below 1000 times 16 plus 65600
;; call: f 3000 3
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $levels i32) (result i32)
    (local $i i32) (local $p i32) (local $key i32) (local $level i32) (local $next i32) (local $steps i32)
    (loop $l
      (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $p (i32.const 65536))
      (local.set $level (local.get $levels))
      (local.set $steps (i32.const 0))
      (loop $levels
        (block $end
          (loop $walk
            (local.set $next (i32.load (i32.add (local.get $p) (i32.shl (local.get $level) (i32.const 2)))))
            (br_if $end (i32.gt_u (local.tee $steps (i32.add (local.get $steps) (i32.const 1))) (i32.const 12)))
            (br_if $end (i32.gt_u (i32.rem_u (i32.load (local.get $next)) (i32.const 3001)) (local.get $key)))
            (local.set $p (local.get $next))
            (br $walk)))
        (br_if $levels (i32.ge_s (local.tee $level (i32.sub (local.get $level) (i32.const 1))) (i32.const 0))))
      (i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $p)))
