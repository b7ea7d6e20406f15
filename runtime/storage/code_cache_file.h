// What a file of the code cache says, and how. It has the optimized functions of one module, each as an image that can
// be placed without the compiler (jit/code/code_image.h). With each is what feedback had found out about it.
//
//   magic, format
//   key: the module, the options that change code, the machine and compiler
//   functions
//
// One file holds what was compiled under one key. Module and options are in the file's name, so that different ones
// live side by side. Who compiled, and for which processor, is not: after an update the file is stale, and replaced. In
// its folder a seal precedes it (sealed_file.h), without which nobody reads it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "feedback/profile/ledger.h"
#include "feedback/profile/profile.h"

namespace hindsight::rt {

struct CacheKey {
  std::array<uint8_t, 32> module{};  // SHA-256 of its bytes
  std::string options;               // in words; every one that changes code or what is worth keeping
  std::string machine;  // in words: processor, its features, the optimizing tier's file and LLVM's
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
  // "<module>-<options>.code", of hexadecimal digits.
  std::string file_name() const;
};

// Where the indirect calls went whose usual targets are inlined, and what the operands were that have code for a usual
// value. The key is the instruction's wasm offset.
using CachedCalls = std::map<uint32_t, feedback::ValueCounts>;

struct CachedFunction {
  FuncIndex function;
  std::string reason;              // of the decision to optimize it
  feedback::ChangeLedger changes;  // state, setting and gain of each
  CachedCalls calls;
  std::vector<std::byte> image;
};

struct CacheFile {
  CacheKey key;
  std::string module_name;                // for people
  std::string llvm_path;                  // of the library that key.machine names
  std::vector<CachedFunction> functions;  // by ascending index
};

std::vector<std::byte> format_cache_file(const CacheFile& file);
// Error kUsage: what is wrong, in words that go on from the file's name. Bounded by the bytes there are,
// whatever they say. Images are not looked into.
Result<CacheFile> parse_cache_file(std::span<const std::byte> bytes);

}  // namespace hindsight::rt
