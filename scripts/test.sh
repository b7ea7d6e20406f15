#!/usr/bin/env bash
# Installs what is missing, builds, and passes the tests. Arguments go to ctest.
#   HINDSIGHT_SPEC_TESTSUITE  folder with the official WebAssembly core tests (*.wast); unset: ../shared/spec-testsuite
#                             beside the checkout, if it is there; else those tests are skipped, and say so
#   HINDSIGHT_SPEC_TESTSUITE_3  the same of WebAssembly 3.0; unset: ../shared/spec-testsuite-2026-07, in the same way
#   HINDSIGHT_LWP_DOCUMENTS   folder with published LWP documents, for the test of the example in one of them; unset:
#                             ../shared/seeds, in the same way
#   HINDSIGHT_PRESET          release (default), debug, asan or tsan
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
preset=${HINDSIGHT_PRESET:-release}

echo "test 1/3: packages"
scripts/setup.sh
if git rev-parse --git-dir >/dev/null 2>&1; then scripts/format.sh --check; fi  # a release without its history has nothing to list
suite=${HINDSIGHT_SPEC_TESTSUITE-}
if [[ -z "$suite" && -d ../shared/spec-testsuite ]]; then suite=$(cd ../shared/spec-testsuite && pwd); fi
suite_3=${HINDSIGHT_SPEC_TESTSUITE_3-}
if [[ -z "$suite_3" && -d ../shared/spec-testsuite-2026-07 ]]; then suite_3=$(cd ../shared/spec-testsuite-2026-07 && pwd); fi
documents=${HINDSIGHT_LWP_DOCUMENTS-}
if [[ -z "$documents" && -d ../shared/seeds ]]; then documents=$(cd ../shared/seeds && pwd); fi
if [[ -n "$suite" ]]; then
  echo "test 2/3: build (build/$preset), official tests from $suite${suite_3:+ and $suite_3}"
else
  echo "test 2/3: build (build/$preset), without the official tests (set HINDSIGHT_SPEC_TESTSUITE)"
fi
mkdir -p build
# Five files are compiled as one, which spares most of the headers. A build folder of one's own is better without: a change
# in one file compiles five anew.
cmake --preset "$preset" -DHINDSIGHT_TESTS=ON -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=5 \
  -DHINDSIGHT_SPEC_TESTSUITE="$suite" -DHINDSIGHT_SPEC_TESTSUITE_3="$suite_3" -DHINDSIGHT_LWP_DOCUMENTS="$documents" \
  >build/configure.log 2>&1 ||
  { cat build/configure.log >&2; exit 1; }
cmake --build --preset "$preset"
echo "test 3/3: tests"
status=0
ctest --preset "$preset" -j2 --output-on-failure "$@" || status=$?
elapsed=$((SECONDS - start))
if [[ $status -eq 0 ]]; then
  echo "test: all tests passed in $((elapsed / 60)) min $((elapsed % 60)) s"
else
  echo "test: FAILED after $((elapsed / 60)) min $((elapsed % 60)) s" >&2
fi
exit "$status"
