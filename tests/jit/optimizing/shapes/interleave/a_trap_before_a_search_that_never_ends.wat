;; What the first tail loads is out of bounds. So the program never comes to the second iteration, whose list goes round for ever:
;; in the search itself, in a loop within its head, and in one within its step. Rounds are counted, and so are turns of those loops.
;; change: interleave load 1 of search
;; change: interleave load 3 of head
;; change: interleave load 3 of step
;; fill: words 0 to 16000 below 1024
;; fill: word 4 is 4096
;; fill: words 16384 to 32384 below 1024
;; fill: word 16384 is 2147483632
;; fill: words 65536 to 98304 below 1024
;; fill: chain 65536 to 98304 by 16 length 8
;; fill: word 131072 is 131072
;; call: search 4000
;; call: head 4000
;; call: step 4000
(module
  (memory 4)
  (func (export "search") (param $n i32) (result i32)
    (local $i i32) (local $key i32) (local $p i32) (local $sum i32)
    (loop $l
      (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $p (i32.add (i32.const 65536) (i32.shl (local.get $key) (i32.const 4))))
      (block $found
        (loop $chain
          (br_if $found (i32.eq (i32.load offset=4 (local.get $p)) (local.get $key)))
          (br_if $chain (local.tee $p (i32.load (local.get $p))))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.add (local.get $p)
        (i32.load (i32.load offset=16384 (i32.shl (local.get $i) (i32.const 2)))))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum))
  (func (export "head") (param $n i32) (result i32)
    (local $i i32) (local $key i32) (local $p i32) (local $q i32) (local $c i32) (local $sum i32)
    (loop $l
      (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $p (i32.add (i32.const 65536) (i32.shl (local.get $key) (i32.const 4))))
      (local.set $q (local.get $p))
      (local.set $c (i32.const 0))
      (loop $list
        (local.set $c (i32.add (i32.mul (local.get $c) (i32.const 5)) (i32.load offset=4 (local.get $q))))
        (br_if $list (local.tee $q (i32.load (local.get $q)))))
      (block $found
        (loop $chain
          (br_if $found (i32.eq (i32.load offset=4 (local.get $p)) (i32.and (local.get $c) (i32.const 1023))))
          (br_if $chain (local.tee $p (i32.load (local.get $p))))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.add (local.get $p)
        (i32.load (i32.load offset=16384 (i32.shl (local.get $i) (i32.const 2)))))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum))
  (func (export "step") (param $n i32) (result i32)
    (local $i i32) (local $key i32) (local $p i32) (local $q i32) (local $c i32) (local $sum i32)
    (loop $l
      (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
      (local.set $p (i32.add (i32.const 65536) (i32.shl (local.get $key) (i32.const 4))))
      (local.set $c (i32.const 0))
      (loop $chain
        (local.set $q (local.get $p))
        (loop $list
          (local.set $c (i32.add (i32.mul (local.get $c) (i32.const 5)) (i32.load offset=4 (local.get $q))))
          (br_if $list (local.tee $q (i32.load (local.get $q)))))
        (br_if $chain (local.tee $p (i32.load (local.get $p)))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.add (local.get $c)
        (i32.load (i32.load offset=16384 (i32.shl (local.get $i) (i32.const 2)))))))
      (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
    (local.get $sum)))
