#!/bin/sh
# Print the Python to use, at least 3.11, after checking for cargo and a linker; or say what is missing and how to get it.
# PYTHON=... picks one.
set -u

missing() {
    printf '\nmissing: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    printf '\n' >&2
    exit 1
}

# A version as one number: 1.88 -> 1088.
number() { printf '%s\n' "$1" | awk -F. '{ print $1 * 1000 + $2 }'; }

command -v cargo >/dev/null 2>&1 || missing "cargo, which builds the Rust engine" \
    "install Rust 1.88 or newer: https://rustup.rs" \
    "if it is installed, put it on the path: . \"\$HOME/.cargo/env\""

rust=$(cargo --version | awk '{ print $2 }')
[ "$(number "$rust")" -ge 1088 ] || missing "Rust 1.88 or newer (cargo says $rust)" "rustup update stable"

command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 ||
    missing "a C compiler, which Rust links with" \
        "Debian, Ubuntu: apt install build-essential; Fedora: dnf install gcc; macOS: xcode-select --install"

found=""
for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    # A name on the path may be a shim that does not run, so try it.
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    if [ "$(number "$version")" -lt 3011 ]; then
        found="$found $python is $version;"
        continue
    fi
    "$python" -c 'import venv, ensurepip' 2>/dev/null || missing "the venv module of $python" "Debian, Ubuntu: apt install python3-venv"
    printf '%s\n' "$python"
    exit 0
done
missing "Python 3.11 or newer (seen:${found:- none})" \
    "install one (https://www.python.org, or your system's packages), then run make again," \
    "or say which one to use: make PYTHON=/path/to/python3.12 ..."
