// wabt as an oracle: what both it and our reader read must be the same module. The bytes may differ (padding, names, the
// order of types that the text does not define). So listings of both are compared in which types are written out.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wabt/binary-writer.h>
#include <wabt/error.h>
#include <wabt/feature.h>
#include <wabt/ir.h>
#include <wabt/stream.h>
#include <wabt/wast-lexer.h>
#include <wabt/wast-parser.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "jit/wasm/instr_reader.h"
#include "jit/wasm/module.h"
#include "jit/wasm/text/script.h"

namespace hindsight::wasm {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

std::optional<Bytes> wabt_bytes(const std::string& text) {
  wabt::Features features;
  features.EnableAll();
  wabt::Errors errors;
  auto lexer = wabt::WastLexer::CreateBufferLexer("", text.data(), text.size(), &errors);
  wabt::WastParseOptions options(features);
  std::unique_ptr<wabt::Module> module;
  if (wabt::Failed(wabt::ParseWatModule(lexer.get(), &module, &errors, &options))) return std::nullopt;
  wabt::MemoryStream stream;
  wabt::WriteBinaryOptions write;
  write.features = features;
  if (wabt::Failed(wabt::WriteBinaryModule(&stream, module.get(), write))) return std::nullopt;
  return stream.output_buffer().data;
}

// wabt may end the process on what it does not know. So it works in a child, for all texts of a file at once: each answer
// is its length and bytes. Those after the text that killed it are missing.
std::vector<std::optional<Bytes>> wabt_answers(const std::vector<std::string>& texts) {
  std::vector<std::optional<Bytes>> answers(texts.size());
  for (size_t first = 0; first < texts.size();) {
    std::FILE* file = std::tmpfile();
    if (file == nullptr) return answers;
    const pid_t child = fork();
    if (child == 0) {
      for (size_t i = first; i < texts.size(); ++i) {
        const auto bytes = wabt_bytes(texts[i]);
        const int64_t size = bytes ? static_cast<int64_t>(bytes->size()) : -1;
        std::fwrite(&size, sizeof(size), 1, file);
        if (bytes) std::fwrite(bytes->data(), 1, bytes->size(), file);
        std::fflush(file);
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::rewind(file);
    int64_t size = 0;
    while (first < texts.size() && std::fread(&size, sizeof(size), 1, file) == 1) {
      if (size >= 0) {
        answers[first].emplace(static_cast<size_t>(size));
        if (std::fread(answers[first]->data(), 1, static_cast<size_t>(size), file) !=
            static_cast<size_t>(size))
          break;
      }
      ++first;
    }
    std::fclose(file);
    ++first;  // the one that killed it, if one did
  }
  return answers;
}

std::string show(const ConstExpr& e) {
  return fmt::format("{}/{:x}/{}/{:x}", static_cast<int>(e.kind), e.bits, e.index, e.high);
}

std::string show(const BlockType& block) {
  std::string text;
  for (uint32_t i = 0; i < block.param_count(); ++i) text += to_string(block.param(i)) + " ";
  text += "->";
  for (uint32_t i = 0; i < block.result_count(); ++i) text += " " + to_string(block.result(i));
  return text;
}

std::string show(const Module& module, const FunctionBody& body) {
  std::string out;
  for (const ValType type : body.locals) out += to_string(type) + " ";
  InstrReader reader(module, body);
  Instr instr;
  while (!reader.at_end()) {
    instr = {};
    reader.next(instr);
    const OpcodeInfo* info = find_opcode(static_cast<uint16_t>(instr.opcode));
    out += fmt::format("\n{}", info->name);
    switch (info->imm) {
      case ImmKind::kNone:
        break;
      case ImmKind::kBlock:
      case ImmKind::kTryTable:
        out += " " + show(instr.block);
        break;
      case ImmKind::kIndirect:
        out += fmt::format(" {} {}", to_string(module.types[instr.index]), instr.index2);
        break;
      case ImmKind::kType:
        out += " " + to_string(module.types[instr.index]);
        break;
      case ImmKind::kRefType:
      case ImmKind::kSelectTypes:
        out += " " + to_string(instr.ref_type);
        break;
      case ImmKind::kI32:
      case ImmKind::kI64:
      case ImmKind::kF32:
      case ImmKind::kF64:
      case ImmKind::kV128:
      case ImmKind::kShuffle:
        out += fmt::format(" {:x} {:x}", instr.bits, instr.high);
        break;
      case ImmKind::kMemArg:
      case ImmKind::kMemArgLane:
        out += fmt::format(" {} {} {} {:x}", instr.index, instr.index2, instr.align_log2, instr.bits);
        break;
      case ImmKind::kBrTable:
        for (const uint32_t target : reader.br_table()) out += fmt::format(" {}", target);
        break;
      case ImmKind::kMemoryInit:
      case ImmKind::kMemoryCopy:
      case ImmKind::kTableInit:
      case ImmKind::kTableCopy:
        out += fmt::format(" {} {}", instr.index, instr.index2);
        break;
      default:
        out += fmt::format(" {}", instr.index);
        break;
    }
  }
  // wabt leaves an empty `else` out.
  constexpr std::string_view kEmptyElse = "\nelse\nend";
  for (size_t at = out.find(kEmptyElse); at != std::string::npos; at = out.find(kEmptyElse, at))
    out.erase(at, std::string_view("\nelse").size());
  return out;
}

std::string show(const Limits& limits) {
  return fmt::format("{} {}", limits.min, limits.max ? std::to_string(*limits.max) : "");
}

std::string listing(const Module& module) {
  std::string out;
  for (const Import& i : module.imports)
    out += fmt::format("import {} {} {}\n", i.module, i.name, static_cast<int>(i.kind));
  for (uint32_t f = 0; f < module.functions.size(); ++f)
    out += fmt::format("func {}\n", to_string(module.type_of(FuncIndex(f))));
  for (const TableType& t : module.tables)
    out += fmt::format("table {} {}\n", to_string(t.element), show(t.limits));
  for (const MemoryType& m : module.memories)
    out += fmt::format("memory {} {} {}\n", show(m.limits), m.is64, m.shared);
  for (const Global& g : module.globals)
    out += fmt::format("global {} {} {}\n", to_string(g.type.type), g.type.mutable_,
                       g.imported ? "" : show(g.init));
  for (uint32_t t = 0; t < module.tags.size(); ++t)
    out += fmt::format("tag {}\n", to_string(module.type_of_tag(t)));
  for (const Export& e : module.exports)
    out += fmt::format("export {} {} {}\n", e.name, static_cast<int>(e.kind), e.index);
  if (module.start) out += fmt::format("start {}\n", module.start->value);
  for (const ConstOp& op : module.const_ops)
    out += fmt::format("const {} {:x} {:x}\n", static_cast<int>(op.opcode), op.bits, op.high);
  for (const ElementSegment& e : module.elements) {
    out += fmt::format("elem {} {} {} {}", static_cast<int>(e.mode), to_string(nullable(e.type)), e.table,
                       show(e.offset));
    for (const ConstExpr& item : e.items) out += " " + show(item);
    out += "\n";
  }
  for (const DataSegment& d : module.data)
    out += fmt::format(
        "data {} {} {} {}\n", d.active, d.memory, show(d.offset),
        std::string(module.bytes.begin() + d.begin.value, module.bytes.begin() + d.begin.value + d.size));
  for (const FunctionBody& body : module.bodies) out += "body " + show(module, body) + "\n";
  return out;
}

struct Text {
  std::string source;
  std::string where;
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The texts of a file that are modules which somebody expects to be valid.
std::vector<Text> texts_of(const fs::path& path) {
  const std::string source = read_file(path);
  if (path.extension() == ".wat") return {{source, path.string()}};
  std::vector<Text> texts;
  const auto script = text::read_script(source, path.string());
  if (!script) return texts;
  for (const text::ScriptCommand& command : script->commands) {
    if (!command.module || command.module->definition ||
        command.module->form != text::ModuleSource::Form::kText)
      continue;
    if (command.kind != text::ScriptCommand::Kind::kModule) continue;
    texts.push_back({source.substr(command.module->begin, command.module->end - command.module->begin),
                     path.filename().string() + ":" + std::to_string(command.line)});
  }
  return texts;
}

TEST(TextOracle, WhateverWabtReadsIsTheSameModuleToUs) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const char* folder : {HINDSIGHT_SPEC_TESTSUITE, HINDSIGHT_SPEC_TESTSUITE_3,
                             HINDSIGHT_SOURCE_DIR "/samples", HINDSIGHT_SOURCE_DIR "/tests"}) {
    if (*folder == '\0') continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder, ignored))
      if (entry.path().extension() == ".wat" || entry.path().extension() == ".wast")
        files.push_back(entry.path());
  }
  std::ranges::sort(files);
  int compared = 0;
  int unknown_to_wabt = 0;
  for (const fs::path& file : files) {
    const std::vector<Text> texts = texts_of(file);
    std::vector<std::string> sources;
    for (const Text& text : texts) sources.push_back(text.source);
    const auto answers = wabt_answers(sources);
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto theirs =
          answers[i] ? decode_module(*answers[i], "wabt") : make_error(ErrorKind::kBadModule, "not read");
      if (!theirs) {
        ++unknown_to_wabt;
        continue;
      }
      const auto bytes = assemble_text(texts[i].source, texts[i].where);
      if (!bytes) {
        ADD_FAILURE() << bytes.error().describe();
        continue;
      }
      const auto ours = decode_module(*bytes, texts[i].where);
      ASSERT_TRUE(ours) << texts[i].where << ": " << ours.error().describe();
      EXPECT_EQ(listing(**ours), listing(**theirs)) << texts[i].where;
      ++compared;
    }
  }
  RecordProperty("compared", compared);
  RecordProperty("unknown_to_wabt", unknown_to_wabt);
  if (*HINDSIGHT_SPEC_TESTSUITE != '\0') {
    EXPECT_GT(compared, 1000);
  }
}

}  // namespace
}  // namespace hindsight::wasm
