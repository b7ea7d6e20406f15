;; change: prefetch load 1 of f
;; fill: words 0 to 40000 below 1024
;; fill: words 65536 to 131072 below 1000000000
;; call: f 2000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $v i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $sum (i32.add (local.get $sum)
          (i32.load offset=65536 (i32.and (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.xor (i32.mul (i32.add (i32.load (i32.shl (local.get $i) (i32.const 2)))
          (i32.const 77)) (i32.const 761)) (i32.shr_u (local.get $i) (i32.const 1)))
          (i32.const 1314)) (i32.const 763)) (i32.shr_u (local.get $i) (i32.const 2)))
          (i32.const 2551)) (i32.const 765)) (i32.shr_u (local.get $i) (i32.const 3)))
          (i32.const 3788)) (i32.const 767)) (i32.shr_u (local.get $i) (i32.const 4)))
          (i32.const 5025)) (i32.const 769)) (i32.shr_u (local.get $i) (i32.const 5)))
          (i32.const 6262)) (i32.const 771)) (i32.shr_u (local.get $i) (i32.const 6)))
          (i32.const 7499)) (i32.const 773)) (i32.shr_u (local.get $i) (i32.const 7)))
          (i32.const 8736)) (i32.const 775)) (i32.shr_u (local.get $i) (i32.const 8)))
          (i32.const 9973)) (i32.const 777)) (i32.shr_u (local.get $i) (i32.const 9)))
          (i32.const 11210)) (i32.const 779)) (i32.shr_u (local.get $i) (i32.const 10)))
          (i32.const 12447)) (i32.const 781)) (i32.shr_u (local.get $i) (i32.const 11)))
          (i32.const 13684)) (i32.const 783)) (i32.shr_u (local.get $i) (i32.const 12)))
          (i32.const 14921)) (i32.const 785)) (i32.shr_u (local.get $i) (i32.const 13)))
          (i32.const 16158)) (i32.const 787)) (i32.shr_u (local.get $i) (i32.const 14)))
          (i32.const 17395)) (i32.const 789)) (i32.shr_u (local.get $i) (i32.const 15)))
          (i32.const 18632)) (i32.const 791)) (i32.shr_u (local.get $i) (i32.const 16)))
          (i32.const 19869)) (i32.const 793)) (i32.shr_u (local.get $i) (i32.const 17)))
          (i32.const 21106)) (i32.const 795)) (i32.shr_u (local.get $i) (i32.const 18)))
          (i32.const 22343)) (i32.const 797)) (i32.shr_u (local.get $i) (i32.const 19)))
          (i32.const 23580)) (i32.const 799)) (i32.shr_u (local.get $i) (i32.const 20)))
          (i32.const 24817)) (i32.const 801)) (i32.shr_u (local.get $i) (i32.const 21)))
          (i32.const 26054)) (i32.const 803)) (i32.shr_u (local.get $i) (i32.const 22))) (i32.const 0xfffc)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
