;; buckets_of_shortest_paths, where a bucket is found by a division. LLVM has the loops twice, as the divisor might be 0: of the copy that
;; is never executed nobody knows how long its loops are, and whole iterations of that one run ahead of nothing.
;; change: prefetch load 7 of f
;; change: interleave load 7 of f
;; fill: words 0 to 40000 below 1000
;; fill: words 40000 to 45000 rising by 64
;; fill: words 100000 to 190000 below 1000
;; fill: words 200000 to 204000 below 100000
;; fill: words 300000 to 300120 rising by 65536
;; call: f 3000 4096
(module
  (memory 48)
  (func (export "f") (param $n i32) (param $least i32) (result i32)
    (local $i i32) (local $u i32) (local $e i32) (local $end i32) (local $v i32) (local $new i32) (local $bucket i32) (local $to i32) (local $pushed i32)
    (block $out
      (br_if $out (i32.le_s (local.get $n) (i32.const 0)))
      (loop $bin
        (local.set $u (i32.shl (i32.load (i32.shl (local.get $i) (i32.const 2))) (i32.const 2)))
        (if (i32.ge_s (i32.load offset=200000 (local.get $u)) (local.get $least))
          (then
            (local.set $e (i32.load offset=40000 (local.get $u)))
            (local.set $end (i32.load offset=40004 (local.get $u)))
            (block $done
              (br_if $done (i32.eq (local.get $e) (local.get $end)))
              (loop $edges
                (local.set $v (i32.load offset=100000 (local.get $e)))
                (local.set $new (i32.add (i32.load offset=100004 (local.get $e)) (i32.load offset=200000 (local.get $u))))
                (if (i32.lt_s (local.get $new) (i32.load offset=200000 (i32.shl (local.get $v) (i32.const 2))))
                  (then
                    (i32.store offset=200000 (i32.shl (local.get $v) (i32.const 2)) (local.get $new))
                    (local.set $bucket (i32.shl (i32.div_s (local.get $new) (local.get $least)) (i32.const 2)))
                    (local.set $to (i32.load offset=300000 (local.get $bucket)))
                    (i32.store offset=524288 (local.get $to) (local.get $v))
                    (i32.store offset=300000 (local.get $bucket) (i32.add (local.get $to) (i32.const 4)))
                    (local.set $pushed (i32.add (local.get $pushed) (i32.const 1)))))
                (br_if $edges (i32.ne (local.tee $e (i32.add (local.get $e) (i32.const 8))) (local.get $end)))))))
        (br_if $bin (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n)))))
    (local.get $pushed)))
