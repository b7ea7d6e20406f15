#!/usr/bin/env bash
# Rebuilds the workloads' .wasm from their sources and regenerates their expected outputs.
#
#   scripts/build_samples.sh [--check] [--quick-only] [NAME...]
#
# NAME       only these workloads or programs of samples/profiling and samples/threads (default: all that
#            samples/manifest.json lists, and those)
# --check    write nothing: build elsewhere, compare the .wasm byte for byte with the committed ones, and compare
#            what the committed ones print with the manifest
# --quick-only  run the programs with their quick arguments alone
#
# Every answer is taken twice, from a native build (clang-19 -O3) and from node running the .wasm, and recorded only
# where the two agree. Needs: clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32 libc++-19-dev-wasm32
# libc++abi-19-dev-wasm32 nodejs. $NODE names another node.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
node=${NODE:-node}
check=no
names=()
passed_on=()
for argument in "$@"; do
  case $argument in
    --check) check=yes; passed_on+=(--check) ;;
    --quick-only) passed_on+=(--quick-only) ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) echo "build_samples.sh: unknown option $argument (try --help)" >&2; exit 2 ;;
    *) names+=("$argument") ;;
  esac
done

for tool in clang-19 clang++-19 wasm-ld-19 "$node"; do
  command -v "$tool" > /dev/null || { echo "build_samples.sh: $tool is not installed" >&2; exit 2; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/native" "$work/wasm"

# Programs that import more than WASI have no native build and do not run in node: their .wasm alone is made.
profiling=(phases)
threads=(collatz_threads gather_threads)
workloads=()
programs=()
threaded=()
for name in "${names[@]}"; do
  if [[ " ${profiling[*]} " == *" $name "* ]]; then programs+=("$name")
  elif [[ " ${threads[*]} " == *" $name "* ]]; then threaded+=("$name")
  else workloads+=("$name"); fi
done
if [[ ${#names[@]} == 0 ]]; then
  programs=("${profiling[@]}")
  threaded=("${threads[@]}")
fi

# One line a workload: name, source, wasm, flags for the .wasm alone.
list_workloads() {
  "$node" --input-type=module - "$@" << 'SCRIPT'
import { chooseWorkloads, readManifest } from './scripts/samples_manifest.mjs';
try {
  for (const w of chooseWorkloads(readManifest(), { names: process.argv.slice(2) })) {
    console.log(`${w.name}\t${w.source}\t${w.wasm}\t${(w.flags ?? []).join(' ')}`);
  }
} catch (error) {
  console.error(`build_samples.sh: ${error.message}`);
  process.exit(2);
}
SCRIPT
}
if [[ ${#names[@]} == 0 || ${#workloads[@]} != 0 ]]; then
  list_workloads "${workloads[@]}" > "$work/list"
else
  : > "$work/list"
fi
total=$(($(wc -l < "$work/list") + ${#programs[@]} + ${#threaded[@]}))

# Contraction is off on both sides: WebAssembly has no fused multiply-add, but clang would still fold constants with
# one, and the answers would differ in the last bit.
flags=(-Wall -Wextra -Werror -ffp-contract=off)

# source_of NAME SOURCE: the file to compile. A source that is a script writes it.
source_of() {
  if [[ $2 != *.mjs ]]; then echo "samples/$2"; return; fi
  [[ -e $work/$1.c ]] || "$node" "samples/$2" > "$work/$1.c"
  echo "$work/$1.c"
}

# build_wasm NAME SOURCE WASM [FLAG...]
build_wasm() {
  local compiler=clang-19 standard=(-std=c23) wasm_only=() source
  source=$(source_of "$1" "$2")
  if [[ $2 == *.cc ]]; then
    compiler=clang++-19
    standard=(-std=c++20)
    wasm_only=(-fno-exceptions -fno-rtti)
  fi
  # Two steps: asked to compile and link at once with -O, clang would run wasm-opt where it is installed, and that
  # drops the name section. --strip-debug drops libc's debug information and keeps the names.
  "$compiler" --target=wasm32-wasi "${standard[@]}" "${flags[@]}" "${wasm_only[@]}" -Isamples/common -O2 "${@:4}" -c "$source" -o "$work/$1.o"
  "$compiler" --target=wasm32-wasi -Wl,--strip-debug "$work/$1.o" -o "$work/wasm/$(basename "$3")"
}

# What a shared memory may grow to, in MiB, as its module has to say.
declare -A most_memory=([collatz_threads]=64 [gather_threads]=1024)

# build_threaded NAME: without a C library, which would have to know threads.
build_threaded() {
  clang-19 --target=wasm32 -std=c23 "${flags[@]}" -O2 -matomics -mbulk-memory -nostdlib -fno-builtin \
    -c "samples/threads/$1/$1.c" -o "$work/$1.o"
  wasm-ld-19 --strip-debug --no-entry --import-memory --export-memory --shared-memory --max-memory=$((${most_memory[$1]} << 20)) \
    "$work/$1.o" -o "$work/wasm/$1.wasm"
}

# build_native NAME SOURCE
build_native() {
  local compiler=clang-19 standard=(-std=c23) source
  source=$(source_of "$1" "$2")
  if [[ $2 == *.cc ]]; then
    compiler=clang++-19
    standard=(-std=c++20)
  fi
  "$compiler" "${standard[@]}" "${flags[@]}" -Isamples/common -O3 "$source" -o "$work/native/$1" -lm
}

# keep WASM: the new one becomes the committed one, or is compared with it.
keep() {
  if [[ $check == no ]]; then
    install -m 644 "$work/wasm/$(basename "$1")" "samples/$1"
  elif ! cmp -s "$work/wasm/$(basename "$1")" "samples/$1"; then
    echo "        samples/$1 is not what its source gives with this compiler"
    different=$((different + 1))
  fi
}

count=0
different=0
while IFS=$'\t' read -r name source wasm wasm_flags; do
  count=$((count + 1))
  echo "  [$count/$total] building $name"
  read -ra own_flags <<< "$wasm_flags"
  build_wasm "$name" "$source" "$wasm" "${own_flags[@]}"
  build_native "$name" "$source"
  keep "$wasm"
done < "$work/list"
for name in "${programs[@]}"; do
  count=$((count + 1))
  echo "  [$count/$total] building $name"
  build_wasm "$name" "profiling/$name/$name.c" "profiling/$name/$name.wasm"
  keep "profiling/$name/$name.wasm"
done
for name in "${threaded[@]}"; do
  count=$((count + 1))
  echo "  [$count/$total] building $name"
  build_threaded "$name"
  keep "threads/$name/$name.wasm"
done

if [[ -s $work/list ]]; then
  echo "  running each in node and natively"
  "$node" scripts/expect_samples.mjs --native "$work/native" "${passed_on[@]}" "${workloads[@]}"
fi

if [[ $different != 0 ]]; then
  echo "build_samples.sh: FAILED: $different of $total .wasm files differ from their sources" >&2
  exit 1
fi
if [[ $check == yes ]]; then
  echo "build_samples.sh: OK: $total workloads are what their sources give, and print what the manifest says."
else
  echo "build_samples.sh: OK: $total workloads built; samples/manifest.json holds what node and native builds agree on."
fi
