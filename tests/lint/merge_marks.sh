#!/usr/bin/env bash
# Fails if a file that git tracks has the marks that a merge leaves where it found no way, and names their lines.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
if git grep -nIE '^(<{7}|>{7}|[|]{7}) ' -- .; then
  echo "marks of a merge that was not finished: decide for one side or write both together, and remove them" >&2
  exit 1
fi
