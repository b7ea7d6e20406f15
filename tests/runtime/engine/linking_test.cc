#include <gmock/gmock.h>

#include <fstream>

#include "tests/runtime/engine/guest.h"

namespace hindsight {
namespace {

using testing::StartsWith;

std::string link_error(Linker& linker, Engine& engine, std::string_view wat) {
  auto instance = linker.instantiate(load(engine, wat));
  if (instance) return "linked";
  EXPECT_EQ(instance.error().kind, ErrorKind::kLink);
  return instance.error().message;
}

TEST(Linking, NamesWhatIsMissingOrDoesNotFit) {
  auto engine = make_engine();
  Linker linker(*engine);
  linker.define_function("m", "f", [](int32_t) {});
  linker.define_instance("lib", instantiate(linker, *engine, R"((module
    (memory (export "memory") 1 2) (table (export "table") 2 funcref) (global (export "g") i32 (i32.const 1))))"));
  EXPECT_EQ(link_error(linker, *engine, R"((module (import "m" "absent" (func))))"),
            "unknown import: \"m\" \"absent\"");
  EXPECT_THAT(link_error(linker, *engine, R"((module (import "m" "f" (func (param i64)))))"),
              StartsWith("incompatible import type: \"m\" \"f\" wants (i64) -> (), got (i32) -> ()"));
  EXPECT_THAT(link_error(linker, *engine, R"((module (import "lib" "memory" (memory 2))))"),
              StartsWith("incompatible import type"));
  EXPECT_THAT(link_error(linker, *engine, R"((module (import "lib" "memory" (memory 1 1))))"),
              StartsWith("incompatible import type"));
  EXPECT_THAT(link_error(linker, *engine, R"((module (import "lib" "table" (table 1 externref))))"),
              StartsWith("incompatible import type"));
  EXPECT_THAT(link_error(linker, *engine, R"((module (import "lib" "g" (global (mut i32)))))"),
              StartsWith("incompatible import type"));
  EXPECT_THAT(link_error(linker, *engine, R"((module (import "lib" "g" (func))))"),
              StartsWith("incompatible import type"));
  EXPECT_EQ(
      link_error(linker, *engine,
                 R"((module (import "lib" "memory" (memory 1 3)) (import "m" "f" (func (param i32)))))"),
      "linked");
}

// Both modules have types of the same shape, under other numbers; the process has numbers of its own.
TEST(Linking, SaysWhatTypesAreRatherThanTheirNumbers) {
  auto engine = make_engine();
  Linker linker(*engine);
  auto others = instantiate(linker, *engine,
                            R"((module (type (func (param f64 f64 f32))) (type (func (result v128 i64)))))");
  linker.define_instance("lib", instantiate(linker, *engine, R"((module
    (type $i (func (param i32) (result i64))) (type $taker (func (param (ref null $i)))) (type $own (func (param (ref null $own))))
    (func (export "f") (type $taker)) (func $own (export "own") (type $own)) (func $g (type $i) (i64.const 0))
    (table (export "table") 1 (ref null $i)) (global (export "g") (mut (ref null $i)) (ref.null $i))
    (tag (export "tag") (param (ref null $i))) (elem declare func $g)))"));
  const std::string ours = R"((module (type (func (result f32))) (type (func (param f32)))
    (type $taker_before (func (param (ref null 1)))) (type $f (func (param f32) (result f64))) (type $taker (func (param (ref null $f))))
    (import "lib" )";
  const std::string wanted = "(ref null (func (param f32) (result f64)))",
                    got = "(ref null (func (param i32) (result i64)))";
  const auto error = [&](const std::string& import) {
    return link_error(linker, *engine, ours + import + "))");
  };
  EXPECT_EQ(error(R"("f" (func (type $taker)))"),
            "incompatible import type: \"lib\" \"f\" wants (" + wanted + ") -> (), got (" + got + ") -> ()");
  EXPECT_EQ(error(R"("own" (func (type $taker)))"),
            "incompatible import type: \"lib\" \"own\" wants (" + wanted +
                ") -> (), got ((ref null (func (param (ref null (func ...)))))) -> ()");
  EXPECT_EQ(error(R"("table" (table 1 (ref null $f)))"),
            "incompatible import type: \"lib\" \"table\" wants a table of " + wanted + ", got " + got);
  EXPECT_EQ(error(R"("g" (global (mut (ref null $f))))"),
            "incompatible import type: \"lib\" \"g\" wants a mutable global of " + wanted +
                ", got a mutable global of " + got);
  EXPECT_EQ(error(R"("tag" (tag (type $taker)))"),
            "incompatible import type: \"lib\" \"tag\" wants a tag of (" + wanted + ") -> (), got one of (" +
                got + ") -> ()");
}

TEST(Linking, SaysWhatTypesOfArgumentsGlobalsAndExceptionsAre) {
  auto engine = make_engine();
  Linker linker(*engine);
  auto others = instantiate(linker, *engine,
                            R"((module (type (func (param f64 f64 f64))) (type (func (result v128 f64)))))");
  auto guest = instantiate(linker, *engine, R"((module (type $i (func (param i32) (result i64)))
    (func $g (type $i) (i64.const 0)) (elem declare func $g)
    (func (export "takes") (param (ref null $i))) (global (export "g") (mut (ref null $i)) (ref.null $i))
    (tag $t (param (ref null $i))) (func (export "throws") (throw $t (ref.func $g)))))");
  const std::string type = "(ref null (func (param i32) (result i64)))";
  const Value number = Value::i32(1);
  const auto refused = guest->call("takes", std::span(&number, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "argument 1 is to be " + type + ", not i32");
  EXPECT_EQ(guest->set_global("g", number).error().message, "the global is a " + type);
  EXPECT_FALSE(guest->call("throws", {}));
  ASSERT_NE(guest->last_trap(), nullptr);
  EXPECT_EQ(guest->last_trap()->detail, "t (" + type + " ref)");
}

// What refers to earlier types can say each of them twice, and so on.
TEST(Linking, SaysNoTypeAtGreatLength) {
  auto engine = make_engine();
  Linker linker(*engine);
  linker.define_function("m", "f", [] {});
  std::string types = "(type (func))";
  for (int i = 0; i < 60; ++i) {
    const std::string earlier = "(ref null " + std::to_string(i) + ")";
    types += "(type (func";
    for (int k = 0; k < 20; ++k) types += " (param " + earlier + ")";
    types += "))";
  }
  const std::string message =
      link_error(linker, *engine, "(module " + types + R"((import "m" "f" (func (type 60)))))");
  EXPECT_THAT(message, testing::HasSubstr("(func ...)"));
  EXPECT_LT(message.size(), 3000u);
}

TEST(Linking, RefusesAnInstanceOfAnotherStore) {
  auto engine = make_engine();
  Linker first(*engine);
  auto lib = instantiate(first, *engine, R"((module (func (export "f"))))");
  Linker second(*engine);
  second.define_function("m", "f", [] {});
  second.define_instance("lib", lib);
  EXPECT_EQ(link_error(second, *engine, R"((module (import "lib" "f" (func))))"),
            "the instance belongs to another linker's store");
  Linker fresh(*engine);
  fresh.define_instance("lib", lib);
  EXPECT_EQ(link_error(fresh, *engine, R"((module (import "lib" "f" (func))))"), "linked");
}

TEST(Linking, GivesAHostFunctionTheInstanceThatImportsIt) {
  auto engine = make_engine();
  Linker linker(*engine);
  std::vector<size_t> sizes;
  linker.define_function("host", "look", [&](Caller& caller) { sizes.push_back(caller.memory().size()); });
  auto first = instantiate(linker, *engine, R"((module (import "host" "look" (func $f)) (memory 1)
    (func (export "run") call $f) (export "look" (func $f))))");
  linker.define_instance("first", first);
  auto second = instantiate(linker, *engine, R"((module (import "first" "look" (func $f)) (memory 2)
    (func (export "run") call $f)))");
  EXPECT_TRUE(first->call("run", {}));
  EXPECT_TRUE(second->call("run", {}));
  EXPECT_THAT(sizes, testing::ElementsAre(65536, 131072));
}

TEST(Instantiation, OfAFailingSegmentTrapsAndKeepsEarlierWrites) {
  auto engine = make_engine();
  Linker linker(*engine);
  auto lib = instantiate(linker, *engine, R"((module (memory (export "memory") 1)))");
  linker.define_instance("lib", lib);
  auto failed = linker.instantiate(load(*engine, R"((module (import "lib" "memory" (memory 1))
    (data (i32.const 0) "kept") (data (i32.const 65535) "beyond")))"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kTrap);
  EXPECT_EQ(failed.error().message, "out of bounds memory access");
  EXPECT_EQ(static_cast<char>(lib->memory().value()[0]), 'k');
}

TEST(Instantiation, RunsTheStartFunctionAndReportsItsTrap) {
  auto engine = make_engine();
  Linker linker(*engine);
  int calls = 0;
  linker.define_function("host", "f", [&] { calls++; });
  instantiate(linker, *engine, R"((module (import "host" "f" (func $f)) (start $f)))");
  EXPECT_EQ(calls, 1);
  auto failed = linker.instantiate(load(*engine, R"((module (func $s unreachable) (start $s)))"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "unreachable");
}

TEST(Loading, RefusesWhatIsNoModule) {
  auto engine = make_engine();
  for (std::string_view bad : {"", "(module", "\0asm\2\0\0\0"}) {
    auto module = engine->load(std::as_bytes(std::span(bad)), "bad");
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().kind, ErrorKind::kBadModule);
  }
  auto missing = engine->load_file("/nonexistent/x.wasm");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
  auto folder = engine->load_file("/");  // can be opened, but not read
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(folder.error().message, StartsWith("cannot be read: "));
  auto device = engine->load_file("/dev/null");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().kind, ErrorKind::kBadModule);
}

TEST(Loading, ReadsFilesOfEverySize) {
  auto engine = make_engine();
  // Around the sizes in which a file is read.
  for (const size_t comment : {0, 65000, 65536, 200000}) {
    const std::string path = testing::TempDir() + "hindsight_loading_test.wat";
    std::ofstream(path) << "(module (func (export \"f\")) ;;" << std::string(comment, 'x') << "\n)";
    auto module = engine->load_file(path);
    ASSERT_TRUE(module) << module.error().describe();
    EXPECT_EQ((*module)->name(), path);
    EXPECT_EQ((*module)->exports().size(), 1u);
  }
}

TEST(Modules, NameTheKindsOfTheirImportsAndExportsAsTheTextFormatDoes) {
  auto engine = make_engine();
  auto module = load(*engine, R"((module
    (import "m" "f" (func (param i32))) (import "m" "t" (table 1 funcref))
    (import "m" "m" (memory 1)) (import "m" "g" (global i32))
    (export "f" (func 0)) (export "t" (table 0)) (export "m" (memory 0)) (export "g" (global 0))))");
  std::vector<std::string> imports, exports;
  for (const ImportType& import : module->imports()) imports.push_back(import.kind);
  for (const ExportType& e : module->exports()) exports.push_back(e.kind);
  EXPECT_THAT(imports, testing::ElementsAre("func", "table", "memory", "global"));
  EXPECT_EQ(exports, imports);
}

}  // namespace
}  // namespace hindsight
