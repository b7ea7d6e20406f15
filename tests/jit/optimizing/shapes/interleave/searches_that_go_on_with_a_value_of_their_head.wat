;; A turn of the search leaves a value of its iteration for the next one, and needs it for nothing else: a hash that the head has
;; computed, or the number of the iteration.
;; change: interleave load 1 of hash
;; change: interleave load 1 of number
;; fill: words 0 to 16000 below 1024
;; fill: words 65536 to 131072 below 1024
;; fill: chain 65536 to 131072 by 8 length 8
;; call: hash 3000
;; call: hash 2000
;; call: number 3000
;; call: number 2000
(module
  (memory 4)
  (func (export "hash") (param $n i32) (result i32)
    (local $i i32) (local $key i32) (local $p i32) (local $last i32) (local $h i32) (local $sum i32) (local $c i32) (local $x i32)
    (local $u i32)
    (loop $l
      (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $h (i32.mul (local.get $key) (i32.const 12345)))
      (local.set $last (i32.const 0))
      (local.set $c (i32.const 0))
      (local.set $p (i32.add (i32.const 65536) (i32.shl (local.get $key) (i32.const 3))))
      (loop $step
        (local.set $x (i32.load offset=4 (local.get $p)))
        (local.set $c (i32.add (i32.mul (local.get $c) (i32.const 3)) (local.get $last)))
        ;; Keeps LLVM from choosing between the two values instead.
        (local.set $u (local.get $x))
        (loop $digits
          (local.set $c (i32.xor (i32.rotl (local.get $c) (i32.const 5)) (local.get $u)))
          (br_if $digits (local.tee $u (i32.shr_u (local.get $u) (i32.const 2)))))
        (local.set $last (local.get $h))
        (br_if $step (local.tee $p (i32.load (local.get $p)))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.add (local.get $x) (local.get $c))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum))
  (func (export "number") (param $n i32) (result i32)
    (local $i i32) (local $key i32) (local $p i32) (local $last i32) (local $sum i32) (local $c i32) (local $x i32) (local $u i32)
    (loop $l
      (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $last (i32.const 0))
      (local.set $c (i32.const 0))
      (local.set $p (i32.add (i32.const 65536) (i32.shl (local.get $key) (i32.const 3))))
      (loop $step
        (local.set $x (i32.load offset=4 (local.get $p)))
        (local.set $c (i32.add (i32.mul (local.get $c) (i32.const 3)) (local.get $last)))
        (local.set $u (local.get $x))
        (loop $digits
          (local.set $c (i32.xor (i32.rotl (local.get $c) (i32.const 5)) (local.get $u)))
          (br_if $digits (local.tee $u (i32.shr_u (local.get $u) (i32.const 2)))))
        (local.set $last (local.get $i))
        (br_if $step (local.tee $p (i32.load (local.get $p)))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.add (local.get $x) (local.get $c))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
