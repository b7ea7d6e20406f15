(module (import "moon" "phase" (func)) (func (export "_start")))
