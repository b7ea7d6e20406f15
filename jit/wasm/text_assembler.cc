// What a module file may be: binary, or text, which is assembled in this process (text/assembler.h).
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "jit/wasm/module.h"
#include "jit/wasm/text/assembler.h"

namespace hindsight::wasm {

namespace {

// Text begins with a parenthesis or a comment, after blanks.
bool looks_like_text(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '(' || text.substr(first, 2) == ";;");
}

std::unexpected<Error> neither(std::span<const uint8_t> bytes, std::string name) {
  constexpr size_t kMostShown = 8;
  if (bytes.empty())
    return make_error(ErrorKind::kBadModule, "the file is empty: neither a binary module nor text",
                      std::move(name));
  std::string shown;
  for (const uint8_t byte : bytes.first(std::min(bytes.size(), kMostShown)))
    shown += fmt::format("{}{:02x}", shown.empty() ? "" : " ", byte);
  return make_error(
      ErrorKind::kBadModule,
      fmt::format("neither a binary module, which begins with the bytes 00 61 73 6d, nor text, which begins "
                  "with a parenthesis: this begins with {}",
                  shown),
      std::move(name));
}

}  // namespace

Result<std::vector<uint8_t>> assemble_text(std::string_view text, std::string_view name) {
  HINDSIGHT_ASSIGN(text::Assembly assembly, text::assemble(text, name));
  return std::move(assembly.bytes);
}

bool is_text_module(std::span<const uint8_t> bytes) {
  return looks_like_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<std::shared_ptr<const Module>> read_module(std::span<const uint8_t> bytes, std::string name) {
  if (is_binary_module(bytes)) return decode_module(bytes, std::move(name));
  if (!is_text_module(bytes)) return neither(bytes, std::move(name));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  HINDSIGHT_ASSIGN(const std::vector<uint8_t> binary, assemble_text(text, name));
  auto module = decode_module(binary, std::move(name));
  if (module || !module.error().offset) return module;
  // Whoever wrote the text knows its lines, and nothing of the bytes that it became.
  Error error = module.error();
  const text::Position position = text::locate(text, *error.offset);
  error.message = fmt::format("{}:{}: {}", position.line, position.column, error.message);
  error.offset.reset();
  return std::unexpected(std::move(error));
}

}  // namespace hindsight::wasm
