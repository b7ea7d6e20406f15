;; Buckets of a count and as many words. What is found in one says which bucket is next. The first one hardly stalls, as the program's
;; iterations overlap there. Copies that give way behind it would wait for it, one after the other.
;; change: interleave load 3 of f weight 0.5
;; change: interleave load 1 of f weight 0.03
;; fill: words 0 to 12000 below 500
;; fill: words 131072 to 139264 below 1000
;; call: f 300
(module
  (memory 4)
  (func (export "f") (param $n i32) (result i32)
    (local $i i32) (local $sum i32) (local $p i32) (local $key i32) (local $end i32) (local $found i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $key (i32.load (i32.shl (local.get $i) (i32.const 2))))
        (local.set $p (i32.add (i32.const 131072) (i32.shl (i32.and (local.get $key) (i32.const 255)) (i32.const 4))))
        (local.set $end (i32.add (local.get $p) (i32.shl (i32.add (i32.and (i32.load (local.get $p)) (i32.const 3)) (i32.const 1)) (i32.const 2))))
        (block $there
          (loop $first
            (br_if $there (i32.eq (i32.and (local.tee $found (i32.load offset=4 (local.get $p))) (i32.const 3)) (i32.and (local.get $key) (i32.const 3))))
            (br_if $first (i32.ne (local.tee $p (i32.add (local.get $p) (i32.const 4))) (local.get $end)))))
        (local.set $p (i32.add (i32.const 135168) (i32.shl (i32.and (i32.mul (local.get $found) (i32.const 77)) (i32.const 255)) (i32.const 4))))
        (local.set $end (i32.add (local.get $p) (i32.shl (i32.add (i32.and (i32.load (local.get $p)) (i32.const 3)) (i32.const 1)) (i32.const 2))))
        (block $also_there
          (loop $second
            (br_if $also_there (i32.eq (i32.and (local.tee $found (i32.load offset=4 (local.get $p))) (i32.const 3)) (i32.and (local.get $key) (i32.const 3))))
            (br_if $second (i32.ne (local.tee $p (i32.add (local.get $p) (i32.const 4))) (local.get $end)))))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) (local.get $found)))
        (i32.store offset=16384 (i32.shl (local.get $i) (i32.const 2)) (local.get $p))
        (br_if $l (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $sum)))
