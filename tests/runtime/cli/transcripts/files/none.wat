(module (func (export "f")))
