;; The product of two sparse vectors, whose places are sorted. Where both have the same, the product is added, and both go on: the one as
;; where it is behind. The wasm says that once for both ways, so what is seldom gone gets a copy of it.
;; change: select branch 1 of f mispredicted 0.5
;; change: select branch 2 of f mispredicted 0.4
;; change: weigh-branches branch 1 of f taken 530 not-taken 470
;; change: weigh-branches branch 2 of f taken 500 not-taken 30
;; show: weights
;; fill: words 0 to 16000 rising by 6
;; fill: words 16000 to 32000 rising by 10
;; fill: words 32768 to 65536 below 1000
;; call: f 0 16000 16000 32000
;; call: f 0 16000 4 16000
;; call: f 0 4 0 4
(module
  (memory 1)
  (func (export "f") (param $a i32) (param $a_end i32) (param $b i32) (param $b_end i32) (result i32)
    (local $x i32) (local $y i32) (local $sum i32)
    (block $done
      (loop $l
        (br_if $done (i32.or (i32.ge_u (local.get $a) (local.get $a_end)) (i32.ge_u (local.get $b) (local.get $b_end))))
        (block $next
          (if (i32.ge_u (local.tee $x (i32.load (local.get $a))) (local.tee $y (i32.load (local.get $b))))
            (then
              (if (i32.lt_u (local.get $y) (local.get $x))
                (then
                  (local.set $b (i32.add (local.get $b) (i32.const 4)))
                  (br $next)))
              (local.set $sum
                (i32.add (local.get $sum)
                  (i32.xor (i32.mul (i32.load offset=32768 (local.get $a)) (i32.rotl (local.get $x) (i32.const 7)))
                    (i32.mul (i32.load offset=32768 (local.get $b)) (i32.const 40503)))))
              (local.set $b (i32.add (local.get $b) (i32.const 4)))))
          (local.set $a (i32.add (local.get $a) (i32.const 4))))
        (br $l)))
    (i32.add (local.get $sum) (i32.xor (local.get $a) (local.get $b)))))
