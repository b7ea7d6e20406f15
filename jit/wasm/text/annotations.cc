// ModuleReader's part for (@custom "name" (before|after section)? "bytes"*).
#include <algorithm>
#include <iterator>

#include "jit/wasm/text/literals.h"
#include "jit/wasm/text/module_reader.h"

namespace hindsight::wasm::text {

bool ModuleReader::custom_section() {
  // In the order of Section.
  static constexpr std::string_view kSectionNames[kSections] = {
      "type",   "import", "func", "table",     "memory", "tag",  "global",
      "export", "start",  "elem", "datacount", "code",   "data",
  };
  in_.take();
  CustomContents custom;
  if (!in_.name(custom.name)) return false;
  if (in_.at(TokenKind::kOpen)) {
    in_.take();
    custom.after = in_.at_word("after");
    if (!in_.accept_word("before") && !in_.accept_word("after"))
      return in_.fail_expected("'before' or 'after' a section");
    const auto section = in_.at(TokenKind::kWord) ? std::ranges::find(kSectionNames, in_.peek().text)
                                                  : std::end(kSectionNames);
    if (section != std::end(kSectionNames)) {
      custom.place = static_cast<Section>(section - std::begin(kSectionNames));
    } else if (in_.at_word(custom.after ? "last" : "first")) {
      custom.place = custom.after ? Section::kData : Section::kType;
    } else {
      return in_.fail_expected("the kind of a section");
    }
    in_.take();
    if (!in_.close()) return false;
  }
  if (!strings(custom.bytes)) return false;
  parts_.customs.push_back(std::move(custom));
  return true;
}

}  // namespace hindsight::wasm::text
