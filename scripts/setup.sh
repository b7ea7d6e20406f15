#!/usr/bin/env bash
# Installs what is missing to build Hindsight on Debian 12, and nothing that is there already.
#   scripts/setup.sh            what building and testing need
#   scripts/setup.sh --samples  also the clang for WebAssembly that rebuilds samples/*/*.wasm
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config git
  llvm-19-dev libasmjit-dev libzydis-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  clang-format-14 libgtest-dev libgmock-dev libbenchmark-dev wabt binaryen nodejs libssl-dev libsodium-dev zlib1g-dev)
if [[ "${1:-}" == "--samples" ]]; then
  packages+=(clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32 libc++-19-dev-wasm32 libc++abi-19-dev-wasm32)
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$status" == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages: ${missing[*]}" >&2
    echo "setup: run this as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${#missing[@]} packages: ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
echo "setup: done"
