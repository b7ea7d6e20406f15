#include "jit/wasm/text/assembler.h"

#include <algorithm>

#include "jit/wasm/text/module_reader.h"
#include "jit/wasm/text/module_writer.h"

namespace hindsight::wasm::text {

namespace {

bool read_name(ModuleParts& parts) {
  if (!parts.in.at_annotation(kNameAnnotation)) return true;
  parts.in.take();
  return parts.in.name(parts.name) && parts.in.close();
}

bool read_module(ModuleParts& parts) {
  Cursor& in = parts.in;
  const bool whole = in.accept_open("module");
  if (whole) (void)in.accept_word("definition");
  if (whole) parts.name = in.optional_id();
  if (!read_name(parts) || !ModuleReader(parts).fields()) return false;
  if (whole && !in.close()) return false;
  return in.at(TokenKind::kEnd) || in.fail_expected("the end of the text");
}

Result<Assembly> assemble_text_form(std::string_view source, size_t begin, size_t end, std::string_view name,
                                    std::vector<SourcePlace>* places) {
  Cursor in(source, begin, end);
  ModuleParts parts(in);
  parts.wants_marks = places != nullptr;
  if (!read_module(parts)) return std::unexpected(in.error(name));
  Assembly out;
  out.bytes = write_module(parts, places);
  out.steps = in.steps();
  return out;
}

bool read_strings(Cursor& in, std::string& out) {
  while (in.at(TokenKind::kString)) {
    std::string part;
    if (!in.string(part)) return false;
    out += part;
  }
  return in.close();
}

}  // namespace

bool read_module_source(Cursor& in, ModuleSource& out) {
  out.begin = in.peek().begin;
  if (!in.open("module")) return false;
  out.definition = in.accept_word("definition");
  out.id = in.optional_id();
  if (in.accept_word("binary")) {
    out.form = ModuleSource::Form::kBinary;
    if (!read_strings(in, out.bytes)) return false;
  } else if (in.accept_word("quote")) {
    out.form = ModuleSource::Form::kQuote;
    if (!read_strings(in, out.bytes)) return false;
  } else if (!in.skip_list()) {
    return false;
  }
  // What closes it is the last token that was taken.
  out.end = in.taken_end();
  return true;
}

Result<Assembly> assemble(std::string_view source, size_t begin, size_t end, std::string_view name) {
  return assemble_text_form(source, begin, end, name, nullptr);
}

Result<Assembly> assemble(std::string_view source, const ModuleSource& module, std::string_view name) {
  switch (module.form) {
    case ModuleSource::Form::kBinary: {
      Assembly out;
      out.bytes.assign(module.bytes.begin(), module.bytes.end());
      out.steps = module.bytes.size();
      return out;
    }
    case ModuleSource::Form::kQuote:
      return assemble(module.bytes, 0, module.bytes.size(), name);
    case ModuleSource::Form::kText:
      break;
  }
  return assemble(source, module.begin, module.end, name);
}

Result<Assembly> assemble(std::string_view source, std::string_view name) {
  Cursor in(source, 0, source.size());
  if (in.at_open("module")) {
    (void)in.open("module");
    (void)in.optional_id();
    if (in.at_word("binary") || in.at_word("quote")) {
      in.seek(0);
      ModuleSource module;
      if (!read_module_source(in, module)) return std::unexpected(in.error(name));
      if (!in.at(TokenKind::kEnd)) {
        in.fail_expected("the end of the text");
        return std::unexpected(in.error(name));
      }
      return assemble(source, module, name);
    }
  }
  return assemble(source, 0, source.size(), name);
}

Position locate(std::string_view source, uint64_t offset) {
  std::vector<SourcePlace> places;
  const auto assembled = assemble_text_form(source, 0, source.size(), {}, &places);
  if (!assembled) return {};
  const auto after = std::ranges::upper_bound(places, offset, {}, &SourcePlace::offset);
  return position_of(source, after == places.begin() ? 0 : std::prev(after)->text);
}

}  // namespace hindsight::wasm::text
