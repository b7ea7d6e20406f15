#include "jit/wasm/text/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "jit/wasm/text/literals.h"

namespace hindsight::wasm::text {

namespace {

using Kind = ScriptCommand::Kind;

struct Assertion {
  std::string_view word;
  Kind kind;
};

constexpr Assertion kAssertions[] = {
    {"assert_trap", Kind::kAssertTrap},
    {"assert_exhaustion", Kind::kAssertExhaustion},
    {"assert_exception", Kind::kAssertException},
    {"assert_unlinkable", Kind::kAssertUnlinkable},
    {"assert_invalid", Kind::kAssertInvalid},
    {"assert_malformed", Kind::kAssertMalformed},
    {"assert_invalid_custom", Kind::kAssertInvalidCustom},
    {"assert_malformed_custom", Kind::kAssertMalformedCustom},
};

struct NumberShape {
  std::string_view name;
  ValType type;
  unsigned lanes;
  unsigned bits;
  bool is_float;
};

constexpr NumberShape kScalars[] = {{"i32.const", ValType::kI32, 1, 32, false},
                                    {"i64.const", ValType::kI64, 1, 64, false},
                                    {"f32.const", ValType::kF32, 1, 32, true},
                                    {"f64.const", ValType::kF64, 1, 64, true}};
constexpr NumberShape kVectors[] = {
    {"i8x16", ValType::kV128, 16, 8, false}, {"i16x8", ValType::kV128, 8, 16, false},
    {"i32x4", ValType::kV128, 4, 32, false}, {"i64x2", ValType::kV128, 2, 64, false},
    {"f32x4", ValType::kV128, 4, 32, true},  {"f64x2", ValType::kV128, 2, 64, true}};

class ScriptReader {
 public:
  explicit ScriptReader(Cursor& in) : in_(in) {}

  bool read(Script& out) {
    if (begins_with_field()) {
      ScriptCommand& command = out.commands.emplace_back();
      command.line = 1;
      command.module =
          ModuleSource{.form = ModuleSource::Form::kText, .begin = 0, .end = in_.source().size()};
      return true;
    }
    while (!in_.at(TokenKind::kEnd))
      if (!command(out.commands.emplace_back(), false)) return false;
    return true;
  }

 private:
  bool begins_with_field() {
    static constexpr std::string_view kFields[] = {"type", "rec",    "import", "func",  "table", "memory",
                                                   "tag",  "global", "export", "start", "elem",  "data"};
    return in_.at(TokenKind::kOpen) &&
           std::ranges::find(kFields, in_.peek_second().text) != std::end(kFields);
  }

  // The line of the next token; each call goes on from the one before, so that all calls together read the text once.
  uint64_t line() {
    const std::string_view text = in_.source();
    const size_t to = in_.peek().begin;
    for (; line_at_ < to; ++line_at_) line_ += text[line_at_] == '\n' ? 1 : 0;
    return line_;
  }

  bool command(ScriptCommand& out, bool in_thread) {
    out.line = line();
    if (in_.at_open("module")) return module(out);
    if (in_.at_open("invoke") || in_.at_open("get")) {
      out.kind = Kind::kAction;
      return action(out.action.emplace());
    }
    if (in_.accept_open("register")) {
      out.kind = Kind::kRegister;
      if (!in_.name(out.text)) return false;
      out.id = in_.optional_id();
      return in_.close();
    }
    if (in_.accept_open("assert_return")) {
      out.kind = Kind::kAssertReturn;
      if (!action(out.action.emplace())) return false;
      return values(out.results, true) && in_.close();
    }
    for (const Assertion& assertion : kAssertions) {
      if (!in_.accept_open(assertion.word)) continue;
      out.kind = assertion.kind;
      return assertion_of(out);
    }
    if (in_.accept_open("wait")) {
      out.kind = Kind::kWait;
      out.id = in_.optional_id();
      return in_.close();
    }
    if (!in_thread && in_.accept_open("thread")) return thread(out);
    return in_.fail_expected("a command of a script");
  }

  bool module(ScriptCommand& out) {
    // (module instance $id? $module?) is the one form without contents.
    if (!read_module_source(in_, out.module.emplace())) return false;
    Cursor shell(in_.source(), out.module->begin, out.module->end);
    (void)shell.open("module");
    if (!shell.accept_word("instance")) return true;
    out.module.reset();
    out.kind = Kind::kInstance;
    out.id = shell.optional_id();
    out.source = shell.optional_id();
    return true;
  }

  bool assertion_of(ScriptCommand& out) {
    if (in_.at_open("module")) {
      if (!read_module_source(in_, out.module.emplace())) return false;
    } else if (!action(out.action.emplace())) {
      return false;
    }
    if (out.kind != Kind::kAssertException && !in_.string(out.text)) return false;
    return in_.close();
  }

  // (thread $id (shared (module $instance))? command*)
  bool thread(ScriptCommand& out) {
    out.kind = Kind::kThread;
    out.id = in_.optional_id();
    if (in_.accept_open("shared")) {
      if (!in_.open("module")) return false;
      out.source = in_.optional_id();
      if (!in_.close() || !in_.close()) return false;
    }
    while (!in_.at(TokenKind::kClose))
      if (!command(out.commands.emplace_back(), true)) return false;
    return in_.close();
  }

  bool action(ScriptAction& out) {
    out.get = in_.at_open("get");
    if (!in_.accept_open("get") && !in_.open("invoke")) return false;
    out.instance = in_.optional_id();
    if (!in_.name(out.name)) return false;
    return (out.get || values(out.arguments, false)) && in_.close();
  }

  bool values(std::vector<ScriptValue>& out, bool patterns) {
    while (!in_.at(TokenKind::kClose)) {
      ScriptValue& value = out.emplace_back();
      if (patterns && in_.accept_open("either")) {
        value.kind = ScriptValue::Kind::kEither;
        while (!in_.at(TokenKind::kClose))
          if (!this->value(value.choices.emplace_back())) return false;
        in_.take();
      } else if (!this->value(value)) {
        return false;
      }
    }
    return true;
  }

  bool value(ScriptValue& out) {
    if (!in_.at(TokenKind::kOpen)) return in_.fail_expected("a value");
    in_.take();
    if (!in_.at(TokenKind::kWord)) return in_.fail_expected("a constant");
    if (in_.accept_word("v128.const")) {
      const auto shape = in_.at(TokenKind::kWord)
                             ? std::ranges::find(kVectors, in_.peek().text, &NumberShape::name)
                             : std::end(kVectors);
      if (shape == std::end(kVectors)) return in_.fail_expected("the shape of a vector");
      in_.take();
      return lanes(*shape, out) && in_.close();
    }
    const std::string_view word = in_.peek().text;
    const auto scalar = std::ranges::find(kScalars, word, &NumberShape::name);
    if (scalar != std::end(kScalars)) {
      in_.take();
      return lanes(*scalar, out) && in_.close();
    }
    constexpr std::string_view kReferencePrefix = "ref.";
    if (!word.starts_with(kReferencePrefix)) return in_.fail_expected("a constant");
    in_.take();
    out.kind = word == "ref.null" ? ScriptValue::Kind::kNull : ScriptValue::Kind::kReference;
    out.reference = word.substr(kReferencePrefix.size());
    if (out.kind == ScriptValue::Kind::kNull) {
      out.reference.clear();
      if (in_.at(TokenKind::kWord) || in_.at(TokenKind::kId)) out.reference = in_.take().text;
    } else if (!in_.at(TokenKind::kClose)) {
      uint64_t number = 0;
      if (!in_.unsigned_number(UINT32_MAX, "a number", number)) return false;
      out.host = static_cast<uint32_t>(number);
    }
    return in_.close();
  }

  bool lanes(const NumberShape& shape, ScriptValue& out) {
    out.type = shape.type;
    out.lane_bits = shape.bits;
    out.float_lanes = shape.is_float;
    for (unsigned i = 0; i < shape.lanes; ++i) {
      ScriptValue::Lane lane;
      if (shape.is_float && (in_.at_word("nan:canonical") || in_.at_word("nan:arithmetic"))) {
        lane.nan =
            in_.at_word("nan:canonical") ? ScriptValue::Nan::kCanonical : ScriptValue::Nan::kArithmetic;
      } else {
        const std::string_view text = in_.at(TokenKind::kWord) ? in_.peek().text : std::string_view();
        const NumberStatus status = shape.is_float ? parse_float(text, shape.bits, lane.bits)
                                                   : parse_integer(text, shape.bits, lane.bits);
        if (status != NumberStatus::kOk)
          return in_.fail_expected(fmt::format("a number of {} bits", shape.bits));
      }
      in_.take();
      out.lanes.push_back(lane);
    }
    return true;
  }

  Cursor& in_;
  size_t line_at_ = 0;
  uint64_t line_ = 1;
};

}  // namespace

Result<Script> read_script(std::string_view source, std::string_view name) {
  Cursor in(source, 0, source.size());
  Script out;
  if (!ScriptReader(in).read(out)) return std::unexpected(in.error(name));
  return out;
}

}  // namespace hindsight::wasm::text
