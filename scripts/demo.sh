#!/usr/bin/env bash
# Installs what is missing, builds, and runs the bundled workloads under feedback: ends in the table of speedups.
# Arguments go to `hindsight bench` instead of --quick.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS

echo "demo 1/3: packages"
scripts/setup.sh
echo "demo 2/3: build (build/release)"
mkdir -p build
cmake --preset release -DHINDSIGHT_TESTS=OFF >build/configure.log 2>&1 || { cat build/configure.log >&2; exit 1; }
cmake --build --preset release
echo "demo 3/3: workloads (about ten minutes on two cores)"
if [[ $# -eq 0 ]]; then set -- --quick; fi
status=0
build/release/bin/hindsight bench "$@" || status=$?
elapsed=$((SECONDS - start))
if [[ $status -eq 0 ]]; then
  echo "demo: done in $((elapsed / 60)) min $((elapsed % 60)) s; every answer was right"
else
  echo "demo: FAILED with status $status after $((elapsed / 60)) min $((elapsed % 60)) s" >&2
fi
exit "$status"
