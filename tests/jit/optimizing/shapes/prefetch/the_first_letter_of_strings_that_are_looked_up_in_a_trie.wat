;; A trie is walked for each of an array of strings: node = next[node][*key++]. Of each string ahead the first letter is fetched, and the root's
;; child for it. What is below that is for interleaving.
;; change: prefetch load 2 of f
;; fill: words 0 to 40000 below 33554432
;; fill: words 65536 to 73536 below 9900 times 4
;; fill: words 131072 to 196608 below 64
;; fill: words 200000 to 200256 below 1000
;; call: f 2000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $key i32) (local $node i32) (local $letter i32) (local $sum i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $keys
        (local.set $key (i32.load offset=65536 (i32.shl (local.get $i) (i32.const 2))))
        (local.set $node (i32.const 1))
        (block $ends
          (block $missing
            (br_if $ends (i32.eqz (local.tee $letter (i32.load8_u (local.get $key)))))
            (loop $down
              (br_if $missing (i32.eqz (local.tee $node (i32.load offset=131072
                (i32.add (i32.shl (local.get $node) (i32.const 10)) (i32.shl (local.get $letter) (i32.const 2)))))))
              (br_if $down (local.tee $letter (i32.load8_u (local.tee $key (i32.add (local.get $key) (i32.const 1)))))))
            (local.set $sum (i32.add (local.get $sum) (i32.load offset=200000 (i32.shl (local.get $node) (i32.const 2)))))
            (br $ends)))
        (br_if $keys (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
