(module
  (tag $oops (export "oops") (param i32 f64))
  (func $inner (throw $oops (i32.const 5) (f64.const 0.5)))
  (func (export "outer") (try (do (call $inner)) (catch_all (rethrow 0)))))
