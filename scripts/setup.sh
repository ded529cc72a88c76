#!/bin/sh
# Sets up the virtual environment, step by step; the Makefile calls it and remembers what is done.
#
#   scripts/setup.sh venv                 make .venv with the best interpreter found
#   scripts/setup.sh install FILE         install a pinned set from requirements/
#   scripts/setup.sh project              install ybs itself, from this folder
#   scripts/setup.sh programs             install what the tests use beside it, where that is allowed
#   scripts/setup.sh synapse              install the Matrix homeserver that slow tests start
#
# Uses uv when it is on PATH, and python3 -m venv with pip when not. Nothing else is needed.
set -eu
cd "$(dirname "$0")/.."
venv=${VENV:-.venv}
unset VIRTUAL_ENV PYTHONHOME PYTHONPATH || true
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
has_uv() { command -v uv >/dev/null 2>&1; }

# Prints the first interpreter that is 3.11 or newer and can make an environment. The system's comes first: distributions
# build theirs with optimisation, pyenv does not. $PYTHON names one of your own.
find_python() {
    needs=ensurepip
    if has_uv; then needs=sys; fi
    for name in ${PYTHON:-/usr/bin/python3 python3 python3.13 python3.12 python3.11 python3.14}; do
        path=$(command -v "$name" 2>/dev/null) || continue
        if "$path" -c "import sys, $needs; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then
            printf '%s\n' "$path"
            return
        fi
    done
    return 1
}

is_usable() { [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# uv trusts what this machine trusts, where that is known; a home that cannot be written to has no room for its cache.
prepare_uv() {
    if [ -s /etc/ssl/certs/ca-certificates.crt ]; then export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-true}"; fi
    folder=${UV_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/uv}
    mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] || export UV_NO_CACHE=1
}

make_venv() {
    if is_usable; then return; fi
    if python=$(find_python); then
        say "$venv with $("$python" --version)"
    elif has_uv; then
        python=3.11 # uv brings one where it may
    else
        fail "Python 3.11 or newer is needed. On Debian: apt-get install python3 python3-venv. Or name one: make PYTHON=/path/to/python3.11"
    fi
    if has_uv; then
        prepare_uv
        uv venv --quiet --clear --python "$python" "$venv"
    elif ! "$python" -m venv --clear "$venv"; then
        rm -rf "$venv"
        fail "$python cannot make a virtual environment (see above). On Debian: apt-get install python3-venv"
    fi
}

install() {
    if has_uv; then
        prepare_uv
        uv pip install --quiet --python "$venv/bin/python" "$@"
    else
        "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
        "$venv/bin/python" -m pip install --quiet --no-compile "$@" # compiled once it is imported; most never are
    fi
}

# bubblewrap is the sandbox, tmux the terminal that slow tests type into, chromium what they look at the page of
# `ybs web` with, postgresql what gateways of several machines share, libfaketime gives them clocks that are wrong. Without them their tests say so and are skipped, which CI takes for a failure.
install_programs() {
    [ "$(uname -s)" = Linux ] || return 0
    missing=
    command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"
    command -v tmux >/dev/null 2>&1 || missing="$missing tmux"
    command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
    ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || missing="$missing libfaketime"
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing$missing"
        export DEBIAN_FRONTEND=noninteractive
        # shellcheck disable=SC2086 # each word is a package
        { apt-get install -qq -y $missing || { apt-get update -qq && apt-get install -qq -y $missing; }; } >/dev/null 2>&1 && return 0
    fi
    say "NOT INSTALLED:$missing. Tests that need them will be skipped; as root: apt-get install$missing"
}

# Clients of the Agent Client Protocol that slow tests drive `ybs acp` with.
install_clients() {
    command -v npm >/dev/null 2>&1 || return 0
    mkdir -p "$venv/npm"
    cp tests/frontends/acp/npm/package.json tests/frontends/acp/npm/package-lock.json "$venv/npm/"
    say "installing tests/frontends/acp/npm"
    (cd "$venv/npm" && npm ci --silent --ignore-scripts --no-audit --no-fund) || say "NOT INSTALLED: the clients of tests/frontends/acp/npm; their tests will fail"
}

# A Matrix homeserver that slow tests start; what it needs does not fit to what ybs needs.
install_synapse() {
    [ "$(uname -s)" = Linux ] || return 0
    if [ ! -x "$venv/synapse/bin/python" ]; then
        if has_uv; then
            prepare_uv
            uv venv --quiet --python "$venv/bin/python" "$venv/synapse"
        else
            "$venv/bin/python" -m venv "$venv/synapse"
        fi
    fi
    say "installing requirements/synapse.txt"
    (venv=$venv/synapse && install --no-deps --require-hashes -r requirements/synapse.txt) || say "NOT INSTALLED: requirements/synapse.txt; tests that need it will be skipped"
}

case ${1:-} in
venv) make_venv ;;
install)
    say "installing $2"
    install --no-deps --require-hashes -r "$2" # the set is whole; some pips look for newer ones of what it pins
    ;;
project)
    install --no-deps --require-hashes -r requirements/build.txt
    install --no-deps --no-build-isolation --editable .
    ;;
programs)
    install_programs
    install_clients
    ;;
synapse) install_synapse ;;
*) fail "usage: scripts/setup.sh venv | install FILE | project | programs | synapse" ;;
esac
