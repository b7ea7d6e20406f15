;; Two sorted lists are merged, of which each ends where its side is taken, and both at once where they are equal. What comes of it
;; says by which way the loop was left. Of a load behind the end of a list, which would trap, nothing is seen.
;; change: select branch 1 of f mispredicted 0.5
;; change: select branch 4 of f mispredicted 0.4
;; fill: words 0 to 400 below 3 times 7 plus 10
;; fill: words 400 to 65536 below 5 times 30 plus 10
;; call: f 0 400 400 800
;; call: f 0 12 65500 65536
;; call: f 65400 65536 0 400
;; call: f 400 404 400 404
(module
  (memory 1)
  (func (export "f") (param $a i32) (param $a_end i32) (param $b i32) (param $b_end i32) (result i32)
    (local $x i32) (local $y i32) (local $sum i32)
    (block $a_first (block $b_first (block $equal
      (br_if $a_first (i32.ge_u (local.get $a) (local.get $a_end)))
      (local.set $x (i32.load (local.get $a)))
      (local.set $y (i32.load (local.get $b)))
      (loop $l
        (local.set $sum (i32.mul (local.get $sum) (i32.const 3)))
        (if (i32.lt_u (local.get $x) (local.get $y))
          (then
            (br_if $a_first (i32.eq (local.tee $a (i32.add (local.get $a) (i32.const 4))) (local.get $a_end)))
            (local.set $x (i32.add (local.get $x) (i32.load (local.get $a)))))
          (else
            (if (i32.gt_u (local.get $x) (local.get $y))
              (then
                (br_if $b_first (i32.eq (local.tee $b (i32.add (local.get $b) (i32.const 4))) (local.get $b_end)))
                (local.set $y (i32.add (local.get $y) (i32.load (local.get $b)))))
              (else
                (local.set $sum (i32.add (local.get $sum) (local.get $x)))
                (br_if $equal (i32.eq (local.tee $a (i32.add (local.get $a) (i32.const 4))) (local.get $a_end)))
                (local.set $x (i32.add (local.get $x) (i32.load (local.get $a))))
                (br_if $b_first (i32.eq (local.tee $b (i32.add (local.get $b) (i32.const 4))) (local.get $b_end)))
                (local.set $y (i32.add (local.get $y) (i32.load (local.get $b))))))))
        (br $l)))
      (return (i32.add (local.get $sum) (i32.const 1000000))))
      (return (i32.add (i32.add (local.get $sum) (local.get $x)) (i32.const 2000000))))
    (i32.add (i32.add (local.get $sum) (local.get $y)) (i32.const 3000000))))
