#!/bin/sh
# Writes requirements/*.txt from pyproject.toml: exact versions and hashes, for every platform, without index addresses.
#
#   scripts/lock.sh             keep the versions pinned now where they still fit
#   scripts/lock.sh --upgrade   take the newest
set -eu
cd "$(dirname "$0")/.."
export PATH="$PATH:$PWD/${VENV:-.venv}/bin"
command -v uv >/dev/null 2>&1 || { echo "lock: needs uv (pip install uv)" >&2; exit 1; }

whole=$(mktemp -d)
trap 'rm -rf "$whole"' EXIT
compile() { # compile FILE SOURCES AND OPTIONS...
    file=$1
    shift
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
        --no-annotate --output-file "$file" "$@"
}

# All sets are cut from one solution, so that they can share a virtual environment.
cat requirements/[!s]*.txt 2>/dev/null | grep -v '^-' >"$whole/all.txt" || true
case ${1:-} in --upgrade) : >"$whole/all.txt" ;; esac
compile "$whole/all.txt" pyproject.toml --extra acp --extra keyring --extra local --extra web --group dev
compile requirements/run.txt pyproject.toml --constraints "$whole/all.txt"
compile requirements/local.txt pyproject.toml --constraints "$whole/all.txt" --extra local
compile requirements/test.txt pyproject.toml --constraints "$whole/all.txt" --group test
compile requirements/check.txt pyproject.toml --constraints "$whole/all.txt" --group dev
compile requirements/synapse.txt --group synapse # a server of the tests, in an environment of its own
compile requirements/build.txt --group build --constraints "$whole/all.txt"
