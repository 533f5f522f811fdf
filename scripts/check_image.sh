#!/bin/sh
# Carry out the commands by which deploy/Containerfile installs kueuecore, in a folder instead of an image: with nothing
# but what .dockerignore lets in, the wheel from dist/ and the locked requirements must make a command that serves.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The checkout must not shadow the installed package.
unset PYTHONPATH

set -- "$checkout"/dist/*.whl
[ -f "$1" ] || { echo "no wheel in dist/: make wheel" >&2; exit 1; }
[ $# -eq 1 ] || { echo "several wheels in dist/: make wheel" >&2; exit 1; }

mkdir "$folder/wheels" "$folder/requirements" "$folder/bin"
cp "$1" "$folder/wheels"
cp "$checkout/requirements/serve.lock" "$folder/requirements"
ln -s "$(command -v "$(sh "$checkout/scripts/find_python.sh")")" "$folder/bin/python"
PATH="$folder/bin:$PATH"

# The commands up to the second stage, which copies the folder.
sed -n '/^FROM .* AS install/,/^FROM [^ ]*$/s/^RUN //p' "$checkout/deploy/Containerfile" |
    sed "s,/wheels,$folder/wheels,g; s,/requirements,$folder/requirements,g; s,/opt,$folder/opt,g" >"$folder/install.sh"
grep -q -- --require-hashes "$folder/install.sh" || { echo "deploy/Containerfile installs without hashes" >&2; exit 1; }
cd "$folder"
sh -eux install.sh

command="$folder/opt/kueuecore/bin/kueuecore"
"$command" --version
"$command" serve --help >/dev/null
# What serve imports is installed: without the extra, this is 2.
code=0
"$command" serve --server http://127.0.0.1:1 --config /no/such/file 2>"$folder/errors" || code=$?
[ "$code" -eq 2 ] && grep -q /no/such/file "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
if "$folder/opt/kueuecore/bin/python" -c 'import pip' 2>/dev/null; then
    echo "the image would bring pip along" >&2
    exit 1
fi
