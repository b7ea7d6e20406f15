;; change: select branch 1 of f mispredicted 0.5
;; fill: words 0 to 32768 below 1000
;; call: f 100 500
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $limit i32) (result i32)
    (local $i i32) (local $v i32) (local $count i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $v (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (if (i32.lt_u (local.get $v) (local.get $limit))
          (then
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 1)) (i32.const 1)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 2)) (i32.const 7920)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 3)) (i32.const 15839)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 4)) (i32.const 23758)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 5)) (i32.const 31677)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 6)) (i32.const 39596)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 7)) (i32.const 47515)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 8)) (i32.const 55434)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 9)) (i32.const 63353)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 10)) (i32.const 71272)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 11)) (i32.const 79191)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 12)) (i32.const 87110)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 13)) (i32.const 95029)))
            (local.set $count (i32.add (i32.rotl (i32.xor (local.get $count) (local.get $v)) (i32.const 14)) (i32.const 102948)))
            (i32.store offset=32768 (i32.const 4) (local.get $count))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $count)))
