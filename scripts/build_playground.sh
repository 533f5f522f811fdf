#!/bin/sh
# Builds the playground: the engine for WebAssembly, and the page around it. Exits with 75 (EX_TEMPFAIL) and a reason in
# the last line where a compiler for WebAssembly, or npm, cannot be had.
set -eu
cd "$(dirname "$0")/.."

sh scripts/wasm_toolchain.sh cargo build --locked --quiet --profile playground --target wasm32-wasip1 \
    --package kueuecore-playground
PYTHONPATH=python "${PYTHON:-.venv/bin/python}" -m scripts.playground \
    --engine "${CARGO_TARGET_DIR:-target}/wasm32-wasip1/playground/kueuecore-playground.wasm" --to target/playground.html
