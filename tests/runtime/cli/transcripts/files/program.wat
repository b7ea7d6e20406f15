(module (func $program (export "_start")))
