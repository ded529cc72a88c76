#!/bin/sh
# Runs the quick suite with several versions of Python, each in a virtual environment of its own beside .venv.
#
#   scripts/test_versions.sh              all of 3.11 to 3.14 that are found
#   scripts/test_versions.sh 3.12 3.13    these; one that is missing is an error
set -eu
cd "$(dirname "$0")/.."
found=0
for version in ${*:-3.11 3.12 3.13 3.14}; do
    if ! "python$version" -c '' 2>/dev/null; then
        [ $# -eq 0 ] || { echo "test-versions: there is no python$version here" >&2; exit 1; }
        echo "test-versions: there is no python$version here; not tested" >&2
        continue
    fi
    found=$((found + 1))
    PYTHON="python$version" make --no-print-directory test "VENV=.venv-$version"
done
[ "$found" -gt 0 ] || { echo "test-versions: no Python from 3.11 on was found" >&2; exit 1; }
