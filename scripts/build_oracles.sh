#!/bin/sh
# Build the players of released Kueues. Exits with 75 if Go or Kueue's modules cannot be had here.
set -eu
cd "$(dirname "$0")/.."
command -v go >/dev/null || { echo "no go here"; exit 75; }
for line in 0.19 0.17; do
    go -C tests/oracle/$line mod download sigs.k8s.io/kueue || { echo "the modules of Kueue $line cannot be had"; exit 75; }
    make --no-print-directory oracle RELEASE=$line
done
