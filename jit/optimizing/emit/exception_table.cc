#include "jit/optimizing/emit/exception_table.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/DataExtractor.h>

#include <algorithm>
#include <charconv>

namespace hindsight::jit::optimizing {
namespace {

constexpr llvm::StringRef kSection = ".gcc_except_table";
constexpr llvm::StringRef kTable = "GCC_except_table";  // and the function's number

std::unexpected<Error> broken(const std::string& why) {
  return make_error(ErrorKind::kInternal, "exception table: " + why);
}
std::unexpected<Error> broken(llvm::Error error) {
  return broken(llvm::toString(std::move(error)));
}

// The call sites of one table, for a function at `begin` of the code.
Status read_table(llvm::StringRef section, uint64_t offset, uint32_t begin,
                  std::vector<ExceptionHandler>& handlers) {
  using namespace llvm::dwarf;
  const llvm::DataExtractor data(section, /*IsLittleEndian=*/true, /*AddressSize=*/8);
  llvm::DataExtractor::Cursor at(offset);
  const uint8_t landing_base = data.getU8(at);
  const uint8_t types = data.getU8(at);
  if (landing_base != DW_EH_PE_omit) return broken("landing pads have a base of their own");
  if (types != DW_EH_PE_omit) data.getULEB128(at);  // where the types are; nobody asks for them
  const uint8_t encoding = data.getU8(at);
  if (encoding != DW_EH_PE_uleb128 && encoding != DW_EH_PE_udata4)
    return broken("call sites in encoding " + std::to_string(encoding));
  const uint64_t bytes = data.getULEB128(at);
  const uint64_t end = at.tell() + bytes;
  const auto next = [&] { return encoding == DW_EH_PE_uleb128 ? data.getULEB128(at) : data.getU32(at); };
  while (at && at.tell() < end) {
    const auto first = static_cast<uint32_t>(next());
    const auto length = static_cast<uint32_t>(next());
    const auto landing = static_cast<uint32_t>(next());
    data.getULEB128(at);  // the action: all landing pads look at the exception themselves
    if (landing == 0 || length == 0) continue;
    handlers.push_back(
        {CodeOffset(begin + first), CodeOffset(begin + first + length), CodeOffset(begin + landing)});
  }
  if (llvm::Error error = at.takeError()) return broken(std::move(error));
  return {};
}

}  // namespace

Status add_exception_handlers(std::span<const char> object, const LinkedCode& code,
                              std::span<const std::string> functions,
                              std::vector<ExceptionHandler>& handlers) {
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "hindsight"));
  if (!file) return broken(file.takeError());
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    auto name = symbol.getName();
    if (!name) return broken(name.takeError());
    if (!name->starts_with(kTable)) continue;
    const llvm::StringRef digits = name->substr(kTable.size());
    size_t number = 0;
    if (std::from_chars(digits.begin(), digits.end(), number).ptr != digits.end() ||
        number >= functions.size())
      return broken("unknown function " + name->str());
    const auto function = code.symbols.find(functions[number]);
    if (function == code.symbols.end()) return broken("no function " + functions[number]);
    auto section = symbol.getSection();
    if (!section) return broken(section.takeError());
    auto section_name = (*section)->getName();
    if (!section_name) return broken(section_name.takeError());
    if (*section_name != kSection) return broken("a table in section " + section_name->str());
    auto contents = (*section)->getContents();
    if (!contents) return broken(contents.takeError());
    auto offset = symbol.getValue();
    if (!offset) return broken(offset.takeError());
    HINDSIGHT_TRY(read_table(*contents, *offset,
                             static_cast<uint32_t>(function->second - code.memory.executable()), handlers));
  }
  std::sort(handlers.begin(), handlers.end(),
            [](const ExceptionHandler& a, const ExceptionHandler& b) { return a.begin < b.begin; });
  return {};
}

}  // namespace hindsight::jit::optimizing
