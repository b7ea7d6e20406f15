// SHA-256 (FIPS 180-4), to name modules by their contents. Not for secrets.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hindsight::wasm {

std::array<uint8_t, 32> sha256(std::span<const uint8_t> bytes);

}  // namespace hindsight::wasm
