#!/bin/sh
# Install a lock file into a venv, which is created first if need be: with uv, or with pip where uv cannot be had.
set -eu
venv=$1 lock=$2

echo "installing $lock into $venv"
[ -x "$venv/bin/python" ] || "$(sh scripts/find_python.sh)" -m venv "$venv"
pip() { "$venv/bin/python" -m pip install --quiet --require-hashes --requirement "$@"; }

PATH="$venv/bin:$PATH"
command -v uv >/dev/null || pip requirements/uv.lock --only-binary :all: 2>/dev/null || { pip "$lock"; exit; }
# Python compiles what it imports, unless it may not.
uv pip install --quiet ${PYTHONDONTWRITEBYTECODE:+--compile-bytecode} --require-hashes \
    --python "$venv/bin/python" --requirement "$lock"
