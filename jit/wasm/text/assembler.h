// The text format of WebAssembly 3.0, from text to a binary module: lexer -> cursor -> module_reader (names, types, then
// fields; code by code_reader) -> module_writer. Syntax alone is judged here; what the module means, and whether this engine
// supports it, the decoder says of the bytes.
//
// Promises: time and memory are linear in the text, but for the logarithm of look-ups by name. There is no recursion, so that no nesting is
// too deep. Nothing is thrown. Every function may be called by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jit/wasm/text/cursor.h"

namespace hindsight::wasm::text {

struct Assembly {
  std::vector<uint8_t> bytes;
  uint64_t steps =
      0;  // bytes read and tokens made, summed over the readings: the deterministic measure of the work
};

// The module in source[begin, end): `(module ...)`, or its fields without that. Errors: kBadModule, the message beginning with
// line:column in `source`.
Result<Assembly> assemble(std::string_view source, size_t begin, size_t end, std::string_view name);
Result<Assembly> assemble(std::string_view source, std::string_view name);

// Which line and column byte `offset` comes from, of the module that assemble makes of the whole text. If that byte comes from nowhere, the
// nearest before it that comes from somewhere. It assembles once more: for messages.
Position locate(std::string_view source, uint64_t offset);

// One module of a script, or of a file: how it is written.
struct ModuleSource {
  enum class Form : uint8_t {
    kText,    // source[begin, end) is all of `(module ...)`, or fields
    kBinary,  // `bytes` is the module
    kQuote,   // `bytes` is text
  };
  Form form = Form::kText;
  std::string id{};         // without the dollar; may be empty
  bool definition = false;  // a script's `(module definition ...)`: not instantiated
  std::string bytes{};
  size_t begin = 0;
  size_t end = 0;
};

// Reads the shell of a `(module ...)` at the cursor, and of the form kText no more than its extent. False: the cursor failed.
bool read_module_source(Cursor& in, ModuleSource& out);
// The module's bytes: what is binary as it is, what is quoted or text assembled.
Result<Assembly> assemble(std::string_view source, const ModuleSource& module, std::string_view name);

}  // namespace hindsight::wasm::text
