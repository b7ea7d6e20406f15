;; A tree whose values are in its leaves: the last node is searched when the walk is over. Its lines are fetched as soon as a node is
;; known, since any may be the last one. The place in the loop stands where the slot is loaded, because the walk carries slots.
;; change: prefetch load 2 of f
;; fill: words 0 to 200000 below 780 times 256
;; call: f 3000 9
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $height i32) (result i32)
    (local $slot i32) (local $node i32) (local $i i32) (local $level i32) (local $sum i32)
    (loop $search
      (local.set $slot (i32.const 64))
      (local.set $level (local.get $height))
      (loop $down
        (local.set $node (i32.load (local.get $slot)))
        (local.set $slot (i32.add (i32.add (local.get $node) (i32.const 128))
          (i32.and (i32.mul (i32.xor (local.get $n) (i32.load (local.get $node))) (i32.const 4)) (i32.const 124))))
        (br_if $down (local.tee $level (i32.sub (local.get $level) (i32.const 1)))))
      (local.set $i (i32.const 0))
      (block $found
        (loop $scan
          (br_if $found (i32.eq (i32.load offset=8 (i32.add (local.get $node) (i32.shl (local.get $i) (i32.const 2))))
                                (local.get $n)))
          (br_if $scan (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.and (i32.load offset=4 (local.get $node)) (i32.const 28))))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $i)))
      (br_if $search (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
