// What both tiers make of a module's functions, as text that can be compared.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace hindsight::jit::testing {

// By function and tier: SHA-256 of the instruction bytes and of the pc map's rows.
using Digest = std::map<std::string, std::string>;

// Every function by the baseline tier; one in `stride` by the optimizing tier too, with entries into the
// middle of two loops. An error is a digest of its own.
Digest digest_of(std::span<const uint8_t> module, uint32_t stride);

std::string to_text(const Digest& digest);

// Modules of random loops (tests/fuzz), as bytes.
std::vector<std::vector<uint8_t>> random_loops(uint32_t first_seed, uint32_t count);

}  // namespace hindsight::jit::testing
