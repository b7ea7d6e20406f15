#include "tests/spec/wat_assembler.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

#include "jit/wasm/opcodes.h"

namespace hindsight::spec {
namespace {

using wasm::ImmKind;

[[noreturn]] void fail(const Node& node, const std::string& what) {
  throw std::runtime_error("line " + std::to_string(node.line) + ": " + what + " " + node.text);
}

std::string byte(unsigned value) {
  return std::string(1, static_cast<char>(value));
}

std::string leb(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += byte(static_cast<unsigned>(value & 0x7f) | 0x80);
  return out + byte(static_cast<unsigned>(value));
}

std::string signed_leb(int64_t value) {
  std::string out;
  while (value < -64 || value > 63) {
    out += byte(static_cast<unsigned>(value & 0x7f) | 0x80);
    value >>= 7;
  }
  return out + byte(static_cast<unsigned>(value & 0x7f));
}

std::string text_bytes(const std::string& text) {
  return leb(text.size()) + text;
}

std::string vector_of(const std::vector<std::string>& items) {
  std::string out = leb(items.size());
  for (const std::string& item : items) out += item;
  return out;
}

std::string raw(uint64_t bits, unsigned bytes) {
  std::string out;
  for (unsigned i = 0; i < bytes; ++i) out += byte(bits >> (8 * i) & 0xff);
  return out;
}

struct Operator {
  std::string code;
  ImmKind imm;
};

const std::map<std::string, Operator>& operators() {
  static const auto* all = [] {
    auto* map = new std::map<std::string, Operator>;
    const auto add = [map](unsigned code, const char* name, ImmKind imm) {
      if (code < 0x100)
        map->try_emplace(name, Operator{byte(code), imm});
      else
        map->try_emplace(name, Operator{byte(code >> 8) + leb(code & 0xff), imm});
    };
#define HINDSIGHT_ADD(name, code, text, imm, signature) add(code, text, ImmKind::imm);
    HINDSIGHT_WASM_OPCODES(HINDSIGHT_ADD)
#undef HINDSIGHT_ADD
    return map;
  }();
  return *all;
}

// Names of one index space.
class Space {
 public:
  uint32_t add(const std::vector<Node>& items, size_t& at) {
    if (at < items.size() && items[at].is_name()) names_[items[at++].text] = count_;
    return count_++;
  }
  uint32_t add_unnamed() { return count_++; }
  uint32_t find(const Node& node) const {
    if (!node.is_name()) return static_cast<uint32_t>(number_bits("i32", node.text));
    const auto found = names_.find(node.text);
    if (found == names_.end()) fail(node, "unknown name");
    return found->second;
  }
  uint32_t count() const { return count_; }

 private:
  std::map<std::string, uint32_t> names_;
  uint32_t count_ = 0;
};

struct Signature {
  std::vector<std::string> params, results;
  std::string bytes() const { return byte(0x60) + vector_of(params) + vector_of(results); }
};

class ModuleAssembler {
 public:
  explicit ModuleAssembler(const Node& module) : module_(module) {}

  std::string run() {
    const std::vector<Node>& fields = module_.items;
    for (size_t i = 1; i < fields.size(); ++i)  // their names may be used anywhere
      if (fields[i].is("type")) {
        size_t at = 1;
        types_.add(fields[i].items, at);
      }
    for (size_t i = 1; i < fields.size(); ++i)
      if (fields[i].is("type")) {
        const Node& function = fields[i].items.back();
        size_t at = 1;
        signatures_.push_back(signature(function.items, at));
      }
    for (size_t i = 1; i < fields.size(); ++i) declare(fields[i]);
    for (size_t i = 1; i < fields.size(); ++i) define(fields[i]);

    std::string out("\0asm\1\0\0\0", 8);
    std::vector<std::string> types;
    for (const Signature& s : signatures_) types.push_back(s.bytes());
    const auto section = [&](unsigned id, const std::vector<std::string>& items) {
      if (items.empty()) return;
      const std::string contents = vector_of(items);
      out += byte(id) + leb(contents.size()) + contents;
    };
    section(1, types);
    section(2, imports_);
    section(3, function_types_);
    section(4, table_types_);
    section(13, tag_types_);
    section(6, globals_);
    section(7, exports_);
    section(9, elements_);
    section(10, bodies_);
    return out;
  }

 private:
  using Items = std::vector<Node>;

  // --- types

  std::string heap_type(const Node& node) {
    if (node.text == "func") return byte(0x70);
    if (node.text == "extern") return byte(0x6f);
    if (node.text == "exn") return byte(0x69);
    return signed_leb(types_.find(node));
  }

  std::string value_type(const Node& node) {
    static const std::map<std::string, unsigned> kBytes = {
        {"i32", 0x7f},  {"i64", 0x7e},     {"f32", 0x7d},       {"f64", 0x7c},
        {"v128", 0x7b}, {"funcref", 0x70}, {"externref", 0x6f}, {"exnref", 0x69}};
    if (node.is("ref"))
      return node.items[1].text == "null" ? byte(0x63) + heap_type(node.items[2])
                                          : byte(0x64) + heap_type(node.items[1]);
    const auto found = kBytes.find(node.text);
    if (found == kBytes.end()) fail(node, "unknown type");
    return byte(found->second);
  }

  // (param ...)* (result ...)*; adds the names of parameters to `locals`.
  Signature signature(const Items& items, size_t& at, Space* locals = nullptr) {
    Signature out;
    for (; at < items.size() && (items[at].is("param") || items[at].is("result")); ++at) {
      const bool param = items[at].is("param");
      size_t i = 1;
      if (param && locals) {
        if (items[at].items.size() > 1 && items[at].items[1].is_name()) {
          locals->add(items[at].items, i);
        } else {
          for (size_t n = 1; n < items[at].items.size(); ++n) locals->add_unnamed();
        }
      } else if (items[at].items.size() > 1 && items[at].items[1].is_name()) {
        ++i;
      }
      for (; i < items[at].items.size(); ++i)
        (param ? out.params : out.results).push_back(value_type(items[at].items[i]));
    }
    return out;
  }

  uint32_t type_of(const Signature& wanted) {
    for (uint32_t i = 0; i < signatures_.size(); ++i)
      if (signatures_[i].bytes() == wanted.bytes()) return i;
    signatures_.push_back(wanted);
    types_.add_unnamed();
    return static_cast<uint32_t>(signatures_.size() - 1);
  }

  uint32_t type_use(const Items& items, size_t& at, Space* locals = nullptr) {
    std::optional<uint32_t> named;
    if (at < items.size() && items[at].is("type")) named = types_.find(items[at++].items[1]);
    const Signature inline_type = signature(items, at, locals);
    if (!named) return type_of(inline_type);
    if (locals && locals->count() == 0)
      for (size_t i = 0; i < signatures_[*named].params.size(); ++i) locals->add_unnamed();
    return *named;
  }

  // --- names and exports, before bodies

  void declare(const Node& field) {
    if (field.is("import")) {
      const Node& what = field.items[3];
      size_t at = 1;
      space(what).add(what.items, at);
    } else if (field.is("func") || field.is("global") || field.is("table") || field.is("tag")) {
      size_t at = 1;
      space(field).add(field.items, at);
    }
  }

  Space& space(const Node& field) {
    if (field.is("func")) return functions_;
    if (field.is("global")) return globals_space_;
    if (field.is("table")) return tables_;
    if (field.is("tag")) return tags_;
    fail(field, "unknown kind of field");
  }
  static unsigned kind_byte(const Node& field) {
    return field.is("func") ? 0 : field.is("table") ? 1 : field.is("global") ? 3 : 4;
  }

  // The name, exports and inline import at the beginning of a field. True if it is an import; `index` is that
  // of what it defines.
  bool head(const Node& field, size_t& at, uint32_t index) {
    if (at < field.items.size() && field.items[at].is_name()) ++at;
    for (; at < field.items.size() && field.items[at].is("export"); ++at)
      exports_.push_back(text_bytes(field.items[at].items[1].text) + byte(kind_byte(field)) + leb(index));
    if (at >= field.items.size() || !field.items[at].is("import")) return false;
    const Node& import = field.items[at++];
    add_import(import.items[1].text, import.items[2].text, field, at);
    return true;
  }

  void add_import(const std::string& from, const std::string& name, const Node& what, size_t at) {
    std::string out = text_bytes(from) + text_bytes(name) + byte(kind_byte(what));
    if (what.is("func"))
      out += leb(type_use(what.items, at));
    else if (what.is("tag"))
      out += byte(0) + leb(type_use(what.items, at));
    else if (what.is("global"))
      out += global_type(what.items[at]);
    else
      out += table_type(what.items, at);
    imports_.push_back(out);
  }

  void define(const Node& field) {
    size_t at = 1;
    if (field.is("type")) return;
    if (field.is("import")) {
      const Node& what = field.items[3];
      if (what.items.size() > 1 && what.items[1].is_name()) ++at;
      ++next_[kind_byte(what)];
      return add_import(field.items[1].text, field.items[2].text, what, at);
    }
    if (field.is("export")) {
      const Node& what = field.items[2];
      exports_.push_back(text_bytes(field.items[1].text) + byte(kind_byte(what)) +
                         leb(space(what).find(what.items[1])));
      return;
    }
    if (field.is("elem")) return element(field);
    if (head(field, at, next_[kind_byte(field)]++)) return;
    if (field.is("func")) {
      function(field, at);
    } else if (field.is("tag")) {
      tag_types_.push_back(byte(0) + leb(type_use(field.items, at)));
    } else if (field.is("global")) {
      global(field, at);
    } else {
      table(field, at);
    }
  }

  // (elem declare? func $f ...), (elem (table $t)? (offset) func $f ...), and the same with a type and
  // expressions in place of `func $f ...`.
  void element(const Node& field) {
    const Items& items = field.items;
    size_t at = 1;
    if (items[at].is_name()) ++at;
    std::string head;
    unsigned flags = 0;
    if (items[at].text == "declare") {
      flags = 3;
      ++at;
    } else if (items[at].is_list() && !items[at].is("ref")) {
      std::string table = leb(0);
      flags = 2;
      if (items[at].is("table")) table = leb(tables_.find(items[at++].items[1]));
      head = table + constant(items[at++]);
    } else {
      flags = 1;
    }
    if (items[at].text == "func") {
      elements_.push_back(leb(flags) + head + byte(0) + functions_list(items, at + 1));
      return;
    }
    const std::string type = value_type(items[at++]);
    std::vector<std::string> list;
    for (; at < items.size(); ++at)
      list.push_back(constant(items[at].is("item") ? items[at].items[1] : items[at]));
    elements_.push_back(leb(flags | 4) + head + type + vector_of(list));
  }

  std::string functions_list(const Items& items, size_t at) {
    std::vector<std::string> list;
    for (; at < items.size(); ++at) list.push_back(leb(functions_.find(items[at])));
    return vector_of(list);
  }

  std::string constant(const Node& instruction) {
    Space no_locals;
    locals_ = &no_locals;
    return folded(instruction) + byte(0x0b);
  }

  std::string global_type(const Node& node) {
    const bool is_mutable = node.is("mut");
    return value_type(is_mutable ? node.items[1] : node) + byte(is_mutable);
  }

  void global(const Node& field, size_t at) {
    const std::string type = global_type(field.items[at]);
    globals_.push_back(type + constant(field.items[at + 1]));
  }

  // minimum maximum? type
  std::string table_type(const Items& items, size_t& at) {
    const uint64_t min = number_bits("i32", items[at++].text);
    std::string limits = byte(0) + leb(min);
    if (items[at].is_word() && std::isdigit(static_cast<unsigned char>(items[at].text[0])))
      limits = byte(1) + leb(min) + leb(number_bits("i32", items[at++].text));
    return value_type(items[at++]) + limits;
  }

  // (table 1 2 type initializer?), (table type (elem $f ...))
  void table(const Node& field, size_t at) {
    if (field.items.back().is("elem")) {
      const Items& functions = field.items.back().items;
      const std::string count = leb(functions.size() - 1);
      table_types_.push_back(value_type(field.items[at]) + byte(1) + count + count);
      elements_.push_back(leb(0) + byte(0x41) + byte(0) + byte(0x0b) + functions_list(functions, 1));
      return;
    }
    const std::string type = table_type(field.items, at);
    if (at == field.items.size())
      table_types_.push_back(type);
    else
      table_types_.push_back(byte(0x40) + byte(0) + type + constant(field.items[at]));
  }

  void function(const Node& field, size_t at) {
    Space locals;
    function_types_.push_back(leb(type_use(field.items, at, &locals)));
    std::vector<std::string> groups;
    for (; at < field.items.size() && field.items[at].is("local"); ++at) {
      const Items& local = field.items[at].items;
      size_t i = 1;
      if (local.size() > 1 && local[1].is_name()) {
        locals.add(local, i);
        groups.push_back(leb(1) + value_type(local[i]));
        continue;
      }
      for (; i < local.size(); ++i) {
        locals.add_unnamed();
        groups.push_back(leb(1) + value_type(local[i]));
      }
    }
    locals_ = &locals;
    labels_.clear();
    labels_.push_back("");
    const std::string body = vector_of(groups) + instructions(field.items, at) + byte(0x0b);
    bodies_.push_back(leb(body.size()) + body);
  }

  // --- instructions

  std::string instructions(const Items& items, size_t at) {
    std::string out;
    while (at < items.size()) out += items[at].is_list() ? folded(items[at++]) : plain(items, at);
    return out;
  }

  // An operator and its immediates, from items[at] on.
  std::string plain(const Items& items, size_t& at) {
    const Node& name = items[at++];
    const auto next = [&]() -> const Node& {
      if (at >= items.size()) fail(name, "an immediate is missing behind");
      return items[at++];
    };
    if (name.text == "throw") return byte(0x08) + leb(tags_.find(next()));
    if (name.text == "throw_ref") return byte(0x0a);
    if (name.text == "select" && at < items.size() && items[at].is("result"))
      return byte(0x1c) + leb(1) + value_type(items[at++].items[1]);
    const auto found = operators().find(name.text);
    if (found == operators().end()) fail(name, "unknown instruction");
    const std::string& code = found->second.code;
    switch (found->second.imm) {
      case ImmKind::kNone:
        return code;
      case ImmKind::kLabel:
        return code + label(next());
      case ImmKind::kFunc:
        return code + leb(functions_.find(next()));
      case ImmKind::kLocal:
        return code + leb(locals_->find(next()));
      case ImmKind::kGlobal:
        return code + leb(globals_space_.find(next()));
      case ImmKind::kType:
        return code + leb(types_.find(next()));
      case ImmKind::kIndirect: {
        const std::string table =
            at < items.size() && items[at].is_word() ? leb(tables_.find(next())) : leb(0);
        return code + leb(type_use(items, at)) + table;
      }
      case ImmKind::kTable:
        return code + leb(tables_.find(next()));
      case ImmKind::kTableCopy: {
        const std::string to = leb(tables_.find(next()));
        return code + to + leb(tables_.find(next()));
      }
      case ImmKind::kTableInit: {
        const std::string table = leb(tables_.find(next()));
        return code + leb(number_bits("i32", next().text)) + table;
      }
      case ImmKind::kRefType:
        return code + heap_type(next());
      case ImmKind::kI32:
        return code + signed_leb(static_cast<int32_t>(number_bits("i32", next().text)));
      case ImmKind::kI64:
        return code + signed_leb(static_cast<int64_t>(number_bits("i64", next().text)));
      case ImmKind::kF32:
        return code + raw(number_bits("f32", next().text), 4);
      case ImmKind::kF64:
        return code + raw(number_bits("f64", next().text), 8);
      default:
        fail(name, "immediates that are not known, of");
    }
  }

  std::string folded(const Node& node) {
    const Items& items = node.items;
    size_t at = 0;
    if (node.is("block") || node.is("loop") || node.is("if") || node.is("try_table")) return structured(node);
    const std::string operation = plain(items, at);
    return instructions(items, at) + operation;
  }

  std::string structured(const Node& node) {
    const Items& items = node.items;
    size_t at = 1;
    std::string name;
    if (at < items.size() && items[at].is_name()) name = items[at++].text;
    const std::string type = block_type(items, at);
    std::string out;
    if (node.is("if")) {
      for (; at < items.size() && !items[at].is("then"); ++at) out += folded(items[at]);
      out += byte(0x04) + type;
      labels_.push_back(name);
      out += instructions(items[at].items, 1);
      if (at + 1 < items.size()) out += byte(0x05) + instructions(items[at + 1].items, 1);
    } else {
      out += byte(node.is("block") ? 0x02 : node.is("loop") ? 0x03 : 0x1f) + type;
      if (node.is("try_table")) out += clauses(items, at);
      labels_.push_back(name);
      out += instructions(items, at);
    }
    labels_.pop_back();
    return out + byte(0x0b);
  }

  std::string block_type(const Items& items, size_t& at) {
    if (at < items.size() && items[at].is("type")) return signed_leb(type_use(items, at));
    const Signature type = signature(items, at);
    if (type.params.empty() && type.results.empty()) return byte(0x40);
    if (type.params.empty() && type.results.size() == 1) return type.results[0];
    return signed_leb(type_of(type));
  }

  std::string clauses(const Items& items, size_t& at) {
    std::vector<std::string> out;
    for (; at < items.size() && items[at].is_list() && items[at].items[0].text.starts_with("catch"); ++at) {
      const Items& clause = items[at].items;
      static constexpr const char* kKinds[] = {"catch", "catch_ref", "catch_all", "catch_all_ref"};
      const auto kind = std::find(std::begin(kKinds), std::end(kKinds), clause[0].text) - std::begin(kKinds);
      if (kind < 2)
        out.push_back(byte(static_cast<unsigned>(kind)) + leb(tags_.find(clause[1])) + label(clause[2]));
      else
        out.push_back(byte(static_cast<unsigned>(kind)) + label(clause[1]));
    }
    return vector_of(out);
  }

  std::string label(const Node& node) {
    if (!node.is_name()) return leb(number_bits("i32", node.text));
    for (size_t depth = 0; depth < labels_.size(); ++depth)
      if (labels_[labels_.size() - 1 - depth] == node.text) return leb(depth);
    fail(node, "unknown label");
  }

  const Node& module_;
  Space types_, functions_, tables_, globals_space_, tags_;
  std::map<unsigned, uint32_t> next_;  // by kind, the index of what is defined next
  std::vector<Signature> signatures_;
  std::vector<std::string> imports_, function_types_, table_types_, tag_types_, globals_, exports_, elements_,
      bodies_;
  Space* locals_ = nullptr;
  std::vector<std::string> labels_;
};

}  // namespace

uint64_t number_bits(const std::string& type, const std::string& text) {
  std::string digits = text;
  std::erase(digits, '_');
  if (type == "f32") return std::bit_cast<uint32_t>(std::strtof(digits.c_str(), nullptr));
  if (type == "f64") return std::bit_cast<uint64_t>(std::strtod(digits.c_str(), nullptr));
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  char* end = nullptr;
  uint64_t value = std::strtoull(digits.c_str(), &end, digits.starts_with("0x") ? 16 : 10);
  if (digits.empty() || *end != '\0') throw std::runtime_error("not a number: " + text);
  if (negative) value = -value;
  return type == "i32" ? static_cast<uint32_t>(value) : value;
}

std::string assemble_module(std::string_view text) {
  return assemble_module(parse_expressions(text).items.at(0));
}

std::string assemble_module(const Node& module) {
  return ModuleAssembler(module).run();
}

}  // namespace hindsight::spec
