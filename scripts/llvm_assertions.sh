#!/usr/bin/env bash
# Builds the parts of LLVM that our passes call with LLVM's own assertions on. Distributions' LLVM is without: what a pass asks
# wrongly of it, a width or an order of operands, goes unnoticed there and may come out as a wrong answer.
#
#   scripts/llvm_assertions.sh SOURCE [OUT]
#
# SOURCE   the folder llvm/ of LLVM's source, of the version that is installed (apt-get source llvm-toolchain-19)
# OUT      where to build (default build/llvm-assertions)
#
# Then run anything with it, for instance:
#   LD_PRELOAD=build/llvm-assertions/libllvm-assertions.so build/release/bin/optimizing_test
#   LD_PRELOAD=build/llvm-assertions/libllvm-assertions.so node tests/fuzz/fuzz.mjs --bin build/release/bin --seconds 300
# A failed assertion ends the process and names the place. What LLVM calls within itself is not checked.
set -euo pipefail

case ${1:--h} in
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
esac
source=$(cd "$1" && pwd)
out=${2:-$(dirname "${BASH_SOURCE[0]}")/../build/llvm-assertions}
config=${LLVM_CONFIG:-llvm-config-19}
if [[ ! -f $source/lib/Analysis/ScalarEvolution.cpp ]]; then
  echo "llvm_assertions.sh: $source holds no lib/Analysis/ScalarEvolution.cpp; give the folder llvm/ of LLVM's source" >&2
  exit 2
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)

# An analysis is known by the address of its key, which only the library has; an option must have one name. Files whose passes
# are known to themselves alone (LCSSA, LoopSimplify) cannot be built apart.
files=(
  Analysis/{AssumptionCache,DomTreeUpdater,LoopInfo,MemorySSA,MemorySSAUpdater,ScalarEvolution,ValueTracking}
  IR/{Attributes,BasicBlock,Constants,DebugInfo,Dominators,Function,IRBuilder,Instruction,Instructions,Metadata,Module,Value}
  Transforms/Utils/{BasicBlockUtils,CloneFunction,CodeExtractor,Local,LoopPeel,LoopRotationUtils,LoopUnroll,LoopUtils}
  Transforms/Utils/{LoopVersioning,SSAUpdater,ScalarEvolutionExpander,ValueMapper}
)
build_one() {
  local from=$1/lib/$3.cpp name=${3##*/}
  perl -0pe 's/^\s*(char|AnalysisKey) \w+::(ID|Key)( = \w+)?;//mg; s/(cl::(?:opt|list)<[^";]*?")/$1asserting-/g' "$from" > "$2/$name.cpp"
  ${CXX:-g++} -std=c++17 -O1 -w -fPIC -fno-rtti -fno-exceptions -UNDEBUG -I"$4" -I"$(dirname "$from")" \
    -c "$2/$name.cpp" -o "$2/$name.o"
}
export -f build_one
printf '%s\n' "${files[@]}" |
  xargs -P "$(nproc)" -I{} bash -ec 'build_one "$@"' _ "$source" "$out" {} "$($config --includedir)"
${CXX:-g++} -shared -o "$out/libllvm-assertions.so" "$out"/*.o -L"$($config --libdir)" -lLLVM-19
echo "$out/libllvm-assertions.so"
