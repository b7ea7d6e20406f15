;; As a search in a k-d tree goes: a comparison says which child is the nearer one, and where in the node its address stands. Both places
;; are known all the same. The second call is the last thing that the function does.
;; change: prefetch load 1 of f
;; fill: words 0 to 262144 below 8190 times 32
;; call: f 0 11
(module
  (memory 5)
  (func $search (export "f") (param $node i32) (param $height i32) (result i32)
    (local $nearer i32)
    (i32.store (i32.const 262144) (i32.add (i32.load (i32.const 262144)) (i32.load offset=16 (local.get $node))))
    (if (i32.eqz (local.get $height)) (then (return (i32.load (i32.const 262144)))))
    (local.set $nearer (i32.lt_u (i32.load offset=16 (local.get $node)) (i32.const 131072)))
    (drop
      (call $search
        (i32.load (i32.add (local.get $node) (select (i32.const 20) (i32.const 24) (local.get $nearer))))
        (i32.sub (local.get $height) (i32.const 1))))
    (call $search
      (i32.load (i32.add (local.get $node) (select (i32.const 24) (i32.const 20) (local.get $nearer))))
      (i32.sub (local.get $height) (i32.const 1)))))
