;; change: values copy 0 of f usually 16
;; bounds: explicit
;; fill: words 0 to 32768 below 4000000000
;; call: f 70 100 30000 16 25
;; call: f 300 65412 0 16 1
(module
  (memory 1)
  (func (export "f") (param $n i32) (param $to i32) (param $from i32) (param $bytes i32) (param $step i32) (result i32)
    (block $out
      (br_if $out (i32.eqz (local.get $n)))
      (loop $l
        (memory.copy (local.get $to) (local.get $from) (local.get $bytes))
        (local.set $to (i32.add (local.get $to) (local.get $step)))
        (local.set $from (i32.add (local.get $from) (local.get $step)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (local.get $n)))
