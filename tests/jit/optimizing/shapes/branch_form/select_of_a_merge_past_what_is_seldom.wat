;; Two sorted lists are gone through together, and what is in both is divided by and kept, as postings of two words are. That is seldom
;; so, and a division is not executed for nothing: it stays behind a branch, and where the lists are gone on in is chosen.
;; change: select branch 1 of f mispredicted 0.5
;; change: select branch 2 of f mispredicted 0.4
;; change: weigh-branches branch 1 of f taken 500 not-taken 500
;; change: weigh-branches branch 2 of f taken 470 not-taken 30
;; show: weights
;; fill: words 0 to 16000 rising by 6
;; fill: words 16000 to 32000 rising by 10
;; fill: words 32000 to 32400 rising by 1
;; call: f 4 16000 16000 32000 40000
;; call: f 4 16000 8 16000 40000
;; call: f 32004 32400 32004 32400 40000
;; call: f 4 8 16004 16008 40000
(module
  (memory 1)
  (func (export "f") (param $a i32) (param $a_end i32) (param $b i32) (param $b_end i32) (param $kept i32) (result i32)
    (local $x i32) (local $y i32) (local $first i32)
    (local.set $first (local.get $kept))
    (block $done
      (loop $l
        (br_if $done (i32.or (i32.ge_u (local.get $a) (local.get $a_end)) (i32.ge_u (local.get $b) (local.get $b_end))))
        (local.set $x (i32.load (local.get $a)))
        (local.set $y (i32.load (local.get $b)))
        (if (i32.lt_u (local.get $x) (local.get $y))
          (then (local.set $a (i32.add (local.get $a) (i32.const 4))))
          (else
            (if (i32.gt_u (local.get $x) (local.get $y))
              (then (local.set $b (i32.add (local.get $b) (i32.const 4))))
              (else
                (i32.store (local.get $kept) (i32.div_u (i32.const 1000000) (i32.add (local.get $x) (i32.const 1))))
                (local.set $kept (i32.add (local.get $kept) (i32.const 4)))
                (local.set $a (i32.add (local.get $a) (i32.const 4)))
                (local.set $b (i32.add (local.get $b) (i32.const 4)))))))
        (br $l)))
    (i32.add (i32.sub (local.get $kept) (local.get $first)) (i32.load (i32.sub (local.get $kept) (i32.const 4))))))
