#!/usr/bin/env bash
# Formats the C++ files that git tracks; with --check only says which are not formatted, and fails if any is.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
if [ "${1:-}" = "--check" ]; then
  git ls-files -z '*.h' '*.cc' | xargs -0 clang-format --dry-run --Werror
else
  git ls-files -z '*.h' '*.cc' | xargs -0 clang-format -i
fi
