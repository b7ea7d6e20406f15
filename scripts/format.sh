#!/usr/bin/env bash
# Formats the C++ sources, by one version of clang-format, so that everybody's is the same.
#   scripts/format.sh           rewrites what is not formatted, and names it
#   scripts/format.sh --check   names it and fails
set -euo pipefail
cd "$(dirname "$0")/.."
formatter=clang-format-14
command -v "$formatter" >/dev/null || { echo "format: $formatter is missing: run scripts/setup.sh" >&2; exit 1; }
mapfile -t files < <(git ls-files -- '*.h' '*.cc' | while read -r file; do [[ -f $file ]] && echo "$file"; done)
unformatted=$(printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 40 "$formatter" --dry-run 2>&1 |
  sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: .*/\1/p' | sort -u)
if [[ -z "$unformatted" ]]; then
  echo "format: ${#files[@]} files are as $("$formatter" --version) has them"
  exit 0
fi
if [[ "${1:-}" == "--check" ]]; then
  echo "$unformatted" >&2
  echo "format: these are not; run scripts/format.sh" >&2
  exit 1
fi
echo "$unformatted"
echo "$unformatted" | xargs "$formatter" -i
