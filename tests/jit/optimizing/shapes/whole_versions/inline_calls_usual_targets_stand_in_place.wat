;; Two targets stand in the loop, and a call for all others.
;; change: inline-calls call 0 of f target 0 target 1
;; call: f 100 31
;; call: f 100 2
(module
  (type $op (func (param i32 i32) (result i32)))
  (table $t 4 4 funcref)
  (elem (i32.const 0) $add $sub $mul)
  (func $add (type $op) (i32.add (local.get 0) (local.get 1)))
  (func $sub (type $op) (i32.sub (local.get 0) (local.get 1)))
  (func $mul (type $op) (i32.mul (local.get 0) (local.get 1)))
  (func (export "f") (param $n i32) (param $every i32) (result i32)
    (local $sum i32)
    (loop $l
      (local.set $sum (call_indirect (type $op) (local.get $sum) (local.get $n)
        (i32.and (i32.shr_u (local.get $n) (local.get $every)) (i32.const 3))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
