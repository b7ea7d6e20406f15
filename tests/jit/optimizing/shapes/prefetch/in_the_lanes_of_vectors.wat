;; What is looked up is worked on at length, so that the loop becomes vectors. With prefetches it does, too: what the slice
;; reads ahead is a vector, of which each lane is prefetched. It reads no further than memory goes, which is asked once a strip.
;; change: prefetch load 1 of f
;; change: prefetch load 1 of backwards
;; fill: words 0 to 131072 below 32768
;; call: f 0 16384
;; call: f 65536 16384
;; call: f 131044 7
;; call: f 0 3
;; call: backwards 65536 16384
;; call: backwards 131072 32768
(module
  (memory 2)
  (func $mix (param $v i32) (result i32)
    (local.set $v (i32.xor (local.get $v) (i32.shr_u (local.get $v) (i32.const 13))))
    (local.set $v (i32.add (local.get $v) (i32.shl (local.get $v) (i32.const 7))))
    (i32.xor (local.get $v) (i32.shr_u (local.get $v) (i32.const 17))))
  (func $mix_all (param $v i32) (result i32)
    (call $mix (call $mix (call $mix (call $mix (call $mix (call $mix (call $mix (call $mix (local.get $v))))))))))
  (func (export "f") (param $at i32) (param $n i32) (result i32)
    (local $sum i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (local.set $sum (i32.add (local.get $sum) (call $mix_all
          (i32.load (i32.shl (i32.load (local.get $at)) (i32.const 2))))))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (local.get $sum))
  (func (export "backwards") (param $end i32) (param $n i32) (result i32)
    (local $sum i32)
    (loop $l
      (local.set $end (i32.sub (local.get $end) (i32.const 4)))
      (local.set $sum (i32.add (local.get $sum) (call $mix_all
        (i32.load (i32.shl (i32.load (local.get $end)) (i32.const 2))))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
