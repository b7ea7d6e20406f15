;; Addresses on the side that is not taken are far out of bounds: the load is of another place then.
;; change: select branch 1 of f mispredicted 0.4
;; fill: words 0 to 16000 below 60000
;; fill: words 400 to 440 below 100 times 2 plus 4294960000
;; call: f 4000 0
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $limit i32) (result i32)
    (local $i i32) (local $v i32) (local $count i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (if (i32.and (local.get $v) (i32.const 1))
          (then (local.set $count (i32.add (local.get $count)
            (i32.load (i32.and (local.get $v) (i32.const 0xfffffffe)))))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $count)))
