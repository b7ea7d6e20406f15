;; Sums the squares below n, modulo 2^32, long enough to be watched.
(module
  (memory $small 1) (memory $other 1) (memory $third 1)  ;; for limits of address space
  (func (export "sum") (param $n i32) (result i32) (local $i i32) (local $s i32)
    (loop $next
      (local.set $s (i32.add (local.get $s) (i32.mul (local.get $i) (local.get $i))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
    (local.get $s)))
