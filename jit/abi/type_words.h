// Types that cross modules, in words. They contain ids of the process (type_registry.h), which say nothing to anybody. So what a reference
// refers to is written out, as the text format has it, until that gets long.
#pragma once

#include <string>

#include "jit/wasm/types.h"

namespace hindsight::jit {

// "i32", "(ref null (func (param i32) (result i64)))"; of a type that is within itself "(ref null (func ...))". The ids in it are held.
std::string type_text(wasm::ValType type);
// "(i32, (ref (func))) -> (f32)"
std::string type_text(const wasm::FuncType& type);

}  // namespace hindsight::jit
