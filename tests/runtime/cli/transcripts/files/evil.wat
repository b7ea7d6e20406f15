(module (func $f (export "\1b[31mred") unreachable))
