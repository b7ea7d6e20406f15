// CodeImage: a code version apart from where it lies, as bytes that another process can make the version from
// again, without the compiler. What depends on places is written anew (relocation.h).
//
// The bytes are hostile until proven otherwise, except for the instructions in them, which nobody can judge.
// Who reads an image from a file has to know that the file is what somebody trusted wrote. Everything else is
// checked against its own length and against the module. Whatever bytes parse accepts gives tables in which
// every index names something, every offset lies inside, and everything that is searched is sorted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "jit/code/code_version.h"
#include "jit/wasm/module.h"

namespace hindsight::jit {

// The number of this format; whoever keeps images keeps it beside them.
inline constexpr uint32_t kCodeImageFormat = 5;

// The code, with what is beside it in its memory, as if it lay nowhere: equal code has equal bytes. Precondition: the
// version has its relocations, and is not a part of another.
std::vector<std::byte> bytes_without_place(const CodeVersion& version);

// Reads only what no longer changes in a published version. Error kUnsupported: the version cannot be moved,
// and why (baseline code, or a kind of relocation that nobody knows).
Result<std::vector<std::byte>> write_code_image(const CodeVersion& version);

// The version in `arena`, of `module`, without an id and not published; its cells are as new. Errors: kUsage,
// the image is no image of a function of this module, with the offset of the defect; kResource, no memory for
// the code.
Result<std::unique_ptr<CodeVersion>> place_code_image(std::span<const std::byte> image,
                                                      const wasm::Module& module, CodeArena& arena);

}  // namespace hindsight::jit
