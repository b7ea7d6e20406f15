// Valid modules with typed function references; those that are not are in verdicts/typed_references.txt.
#pragma once

#include <string_view>

namespace hindsight::wasm::testing {

inline constexpr std::string_view kValidTypedModules[] = {
    // Types that refer to types, and equal ones in place of each other.
    R"((module (type $a (func)) (type $b (func (param (ref $a)) (result (ref null $a))))
      (type $a2 (func)) (type $b2 (func (param (ref $a2)) (result (ref null $a2))))
      (func $f (param (ref $b)) (result (ref $b2)) (local.get 0))))",
    "(module (type $self (func (param (ref $self)))) (type $same (func (param (ref $same))))"
    " (func (param (ref $self)) (result (ref $same)) (local.get 0)))",
    // Subtypes wherever a value goes.
    R"((module (type $t (func)) (elem declare func $f) (func $f)
      (func (result (ref $t)) (ref.func $f))
      (func (result (ref null $t)) (ref.func $f))
      (func (result (ref func)) (ref.func $f))
      (func (result funcref) (ref.func $f))
      (func (result funcref) (ref.null $t))
      (func (param (ref $t)) (result funcref) (block (result funcref) (local.get 0)))
      (func (param (ref $t)) (result funcref) (loop (result (ref null $t)) (local.get 0)))
      (func (param (ref $t)) (local funcref) (local.set 1 (local.get 0)) (drop (local.tee 1 (local.get 0))))
      (func (param (ref $t)) (result funcref) (return (local.get 0)))
      (func (param (ref $t) i32) (result funcref) (br_if 0 (local.get 0) (local.get 1)))
      (func (param (ref $t) i32) (result funcref) (select (result (ref null $t)) (local.get 0) (ref.null $t) (local.get 1)))
      (func (param (ref $t)) (call $takes (local.get 0)))
      (func $takes (param (ref null func)))))",
    // An if without else: parameters may be subtypes of results.
    "(module (type $t (func)) (func (param (ref $t) i32) (result funcref) (local.get 0) (local.get 1)"
    " (if (param (ref $t)) (result funcref) (then))))",
    // Globals.
    R"((module (type $t (func)) (func $f) (global $g (ref $t) (ref.func $f)) (global (mut funcref) (ref.func $f))
      (global (ref null $t) (ref.null $t)) (global (ref func) (ref.func $f))
      (func (result (ref null $t)) (global.get $g)) (func (param (ref $t)) (global.set 1 (local.get 0)))))",
    "(module (type $t (func)) (import \"m\" \"g\" (global $g (ref $t))) (global funcref (global.get $g)))",
    // Tables.
    R"((module (type $t (func)) (func $f) (table $all 3 (ref $t) (ref.func $f)) (table $some 2 4 (ref null $t))
      (table $any 1 funcref) (table 1 (ref null func) (ref.func $f)) (table 1 externref (ref.null extern))
      (elem $e (ref $t) (ref.func $f)) (elem (table $any) (i32.const 0) (ref $t) (ref.func $f))
      (elem (table $all) (i32.const 0) (ref $t) (ref.func $f)) (elem (table $any) (i32.const 0) func $f)
      (func (result (ref $t)) (table.get $all (i32.const 0)))
      (func (param (ref $t)) (table.set $some (i32.const 0) (local.get 0)))
      (func (table.copy $any $all (i32.const 0) (i32.const 0) (i32.const 1)))
      (func (table.init $some 0 (i32.const 0) (i32.const 0) (i32.const 1)))
      (func (param (ref $t)) (result i32) (table.grow $all (local.get 0) (i32.const 2)))
      (func (param (ref $t)) (table.fill $all (i32.const 0) (local.get 0) (i32.const 1)))
      (func (call_indirect $all (type $t) (i32.const 0)))))",
    "(module (func $f) (table 1 (ref func) (ref.func $f)) (elem (table 0) (i32.const 0) func $f))",
    "(module (type $t (func)) (import \"m\" \"t\" (table 1 (ref $t))) (func (call_indirect 0 (type $t) "
    "(i32.const 0))))",
    "(module (type $t (func)) (import \"m\" \"g\" (global (ref $t))) (table 5 (ref $t) (global.get 0)))",
    // Calls.
    R"((module (type $t (func (param i32) (result i64))) (elem declare func $f) (func $f (type $t) (i64.const 1))
      (func (param (ref null $t)) (result i64) (call_ref $t (i32.const 1) (local.get 0)))
      (func (param (ref $t)) (result i64) (return_call_ref $t (i32.const 1) (local.get 0)))
      (func (result i64) (call_ref $t (i32.const 1) (ref.func $f)))
      (func (unreachable) (call_ref $t) (drop))
      (func (result i64) (unreachable) (return_call_ref $t))))",
    "(module (type $t (func)) (type $r (func (result (ref $t)))) (func (param (ref $r)) (result funcref)"
    " (return_call_ref $r (local.get 0))))",
    // Null or not.
    R"((module (type $t (func)) (type $i (func (param i32)))
      (func (param (ref null $t)) (result (ref $t)) (ref.as_non_null (local.get 0)))
      (func (param externref) (result (ref extern)) (ref.as_non_null (local.get 0)))
      (func (param (ref $t)) (result (ref $t)) (ref.as_non_null (local.get 0)))
      (func (param funcref) (result (ref func))
        (block $null (return (br_on_null $null (local.get 0)))) (unreachable))))",
    R"((module (type $t (func))
      (func (param (ref null $t)) (result i32)
        (block $null (drop (br_on_null $null (local.get 0))) (return (i32.const 1))) (i32.const 0))
      (func (param (ref null $t)) (result (ref $t))
        (br_on_non_null 0 (local.get 0)) (unreachable))
      (func (param (ref null $t)) (result funcref) (br_on_non_null 0 (local.get 0)) (ref.null func))
      (func (param externref) (result i32 externref) (i32.const 1) (br_on_non_null 0 (local.get 0)) (ref.null extern))
      (func (param externref) (result i32) (i32.const 1) (drop (br_on_null 0 (local.get 0))))
      (func (unreachable) (br_on_null 0) (drop))
      (func (result (ref $t)) (unreachable) (br_on_non_null 0))
      (func (unreachable) (ref.as_non_null) (drop))
      (func (result funcref) (unreachable) (ref.as_non_null))
      (func (result i32) (unreachable) (ref.as_non_null) (ref.is_null))))",
    // Locals without a default value.
    R"((module (type $t (func)) (elem declare func $f) (func $f)
      (func (param (ref $t)) (local i32 (ref $t)) (local.set 2 (local.get 0)) (drop (local.get 2)))
      (func (local $x (ref $t)) (block (local.set $x (ref.func $f)) (block (drop (local.get $x)))))
      (func (local $x (ref $t)) (drop (local.tee $x (ref.func $f))) (loop (drop (local.get $x))))
      (func (param i32) (local $x (ref func)) (local.set $x (ref.func $f))
        (if (local.get 0) (then (local.set $x (ref.func $f)) (drop (local.get $x))) (else (drop (local.get $x))))
        (drop (local.get $x)))
      (func (local $x (ref $t)) (unreachable) (local.set $x (ref.func $f)) (drop (local.get $x)))
      (func (local $x (ref $t)))))",
};

}  // namespace hindsight::wasm::testing
