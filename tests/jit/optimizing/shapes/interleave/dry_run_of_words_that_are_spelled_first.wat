;; A word is spelled into a buffer, letter by letter, and then looked up in a trie.
;; change: interleave load 2 of f
;; fill: words 0 to 12000 below 1000000
;; fill: words 131072 to 179072 below 3000 times 16 plus 131072
;; call: f 3000 196608
(module
  (memory 4)
  (func (export "f") (param $n i32) (param $word i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $rest i32) (local $length i32) (local $letter i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $rest (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $length (i32.const 0))
        (loop $spell
          (i32.store8 (i32.add (local.get $word) (local.get $length))
            (i32.add (i32.and (local.get $rest) (i32.const 3)) (i32.const 1)))
          (local.set $length (i32.add (local.get $length) (i32.const 1)))
          (br_if $spell (local.tee $rest (i32.shr_u (local.get $rest) (i32.const 2)))))
        (i32.store8 (i32.add (local.get $word) (local.get $length)) (i32.const 0))
        (local.set $p (i32.const 131072))
        (local.set $length (local.get $word))
        (block $found
          (loop $down
            (br_if $found (i32.eqz (local.tee $letter (i32.load8_u (local.get $length)))))
            (local.set $length (i32.add (local.get $length) (i32.const 1)))
            (local.set $p (i32.load (i32.add (local.get $p)
              (i32.shl (i32.sub (local.get $letter) (i32.const 1)) (i32.const 2)))))
            (br $down)))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $p)))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
