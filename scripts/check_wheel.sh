#!/bin/sh
# Install the wheel of dist/ into an empty environment outside the checkout and run the README's examples there.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

set -- "$checkout"/dist/*.whl
[ -f "$1" ] || { echo "no wheel in dist/: make wheel" >&2; exit 1; }

"$(sh "$checkout/scripts/find_python.sh")" -m venv env
env/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$checkout/requirements/runtime.lock"
# No index: what the wheel asks for must be there now.
env/bin/python -m pip install --quiet --disable-pip-version-check --no-index "$1"
env/bin/python -m pip check
env/bin/python -I -c 'import kueuecore, sys; print(kueuecore.__file__); assert kueuecore.__file__.startswith(sys.prefix)'
env/bin/python -I "$checkout/scripts/readme_example.py" "$checkout/README.md"
