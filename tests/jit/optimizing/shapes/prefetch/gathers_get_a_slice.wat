;; A gather, a[b[i]]: the slice loads b[i + distance], and prefetches what it leads to. The loop goes in strips with and without.
;; change: prefetch load 1 of f
;; fill: words 0 to 40000 below 1024
;; fill: words 65536 to 131072 below 1000000000
;; call: f 0
;; call: f 1
;; call: f 5000
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $v i32) (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $sum (i32.add (local.get $sum)
          (i32.load offset=65536 (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
