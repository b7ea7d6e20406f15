#include "tests/spec/wast_assembler.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/spec/s_expression.h"
#include "tests/spec/wat_assembler.h"

namespace hindsight::spec {
namespace {

using Json = nlohmann::json;

class ScriptAssembler {
 public:
  explicit ScriptAssembler(std::filesystem::path json) : json_(std::move(json)) {}

  Json commands(const Node& script) {
    Json out = Json::array();
    for (const Node& command : script.items) out.push_back(convert(command));
    return out;
  }

 private:
  Json convert(const Node& command) {
    const std::string type = command.items.at(0).text;
    Json out{{"type", type}, {"line", command.line}};
    if (type == "module") {
      out["filename"] = write(command);
    } else if (type == "register") {
      out["as"] = command.items.at(1).text;
    } else if (type == "assert_return") {
      out["action"] = action(command.items.at(1));
      out["expected"] = Json::array();
      for (size_t i = 2; i < command.items.size(); ++i) out["expected"].push_back(value(command.items[i]));
    } else if (type == "assert_trap" || type == "assert_exception") {
      out["action"] = action(command.items.at(1));
      if (type == "assert_trap") out["text"] = command.items.at(2).text;
    } else if (type == "assert_invalid" || type == "assert_malformed" || type == "assert_unlinkable") {
      out["filename"] = write(command.items.at(1));
      out["text"] = command.items.at(2).text;
    } else {
      throw std::runtime_error("line " + std::to_string(command.line) + ": unknown command " + type);
    }
    return out;
  }

  std::string write(const Node& module) {
    const bool quoted = module.items.size() > 1 && module.items[1].text == "quote";
    const std::string name = "module." + std::to_string(modules_++) + (quoted ? ".wat" : ".wasm");
    std::string bytes;
    if (quoted)
      for (size_t i = 2; i < module.items.size(); ++i) bytes += module.items[i].text;
    else
      bytes = assemble_module(module);
    std::ofstream file(json_.parent_path() / name, std::ios::binary);
    file << bytes;
    return name;
  }

  static Json action(const Node& invoke) {
    if (!invoke.is("invoke"))
      throw std::runtime_error("line " + std::to_string(invoke.line) + ": another action");
    Json args = Json::array();
    for (size_t i = 2; i < invoke.items.size(); ++i) args.push_back(value(invoke.items[i]));
    return {{"type", "invoke"}, {"field", invoke.items.at(1).text}, {"args", args}};
  }

  static Json value(const Node& node) {
    const std::string& head = node.items.at(0).text;
    if (head == "ref.extern") return {{"type", "externref"}, {"value", node.items.at(1).text}};
    if (head == "ref.func") return {{"type", "funcref"}};  // some function
    if (!head.ends_with(".const")) throw std::runtime_error("unknown value " + head);
    const std::string type = head.substr(0, head.size() - 6);
    return {{"type", type}, {"value", std::to_string(number_bits(type, node.items.at(1).text))}};
  }

  const std::filesystem::path json_;
  int modules_ = 0;
};

}  // namespace

std::string assemble_script(const std::filesystem::path& wast, const std::filesystem::path& json) {
  try {
    std::ifstream file(wast, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    ScriptAssembler assembler(json);
    const Json script{{"source_filename", wast.string()},
                      {"commands", assembler.commands(parse_expressions(text))}};
    std::ofstream(json) << script.dump();
    return {};
  } catch (const std::exception& e) {
    return wast.string() + ": " + e.what();
  }
}

}  // namespace hindsight::spec
