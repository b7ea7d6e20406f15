;; Down a tree of nodes of several lines: which child comes next is known after the keys were compared. The lines of the node that comes
;; are fetched at once, as soon as it is known: its keys behind the first line, and where the children's addresses are.
;; change: prefetch load 1 of f
;; change: prefetch load 2 of f
;; change: weigh-branches branch 0 of f taken 20 not-taken 80
;; fill: words 0 to 200000 below 780 times 256
;; call: f 3000 9
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $height i32) (result i32)
    (local $node i32) (local $i i32) (local $level i32) (local $sum i32)
    (loop $search
      (local.set $node (i32.const 0))
      (local.set $level (local.get $height))
      (loop $down
        (local.set $i (i32.and (i32.load (local.get $node)) (i32.const 1)))
        (block $found
          (loop $scan
            (br_if $found (i32.gt_u (i32.load offset=4 (i32.add (local.get $node) (i32.shl (local.get $i) (i32.const 2))))
                                    (i32.and (i32.mul (local.get $n) (i32.const 2654435)) (i32.const 0x3ffff))))
            (br_if $scan (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 31)))))
        (local.set $node (i32.load offset=128 (i32.add (local.get $node) (i32.shl (local.get $i) (i32.const 2)))))
        (br_if $down (local.tee $level (i32.sub (local.get $level) (i32.const 1)))))
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $node)))
      (br_if $search (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
