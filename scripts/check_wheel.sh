#!/bin/sh
# Install the wheel from dist/ into an empty environment outside the checkout, run the README's examples there, and then
# the tests of what users call: the API, the pages, the command, the invariants (tests/conftest.py skips what needs the
# proof). The API server for tests is installed beside it, for the pages that use it.
#
#     check_wheel.sh [WHEEL]
#
# PYTHON=... picks the Python, and QUICK=1 leaves the tests out.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ $# -eq 1 ] || set -- "$checkout"/dist/kueuecore-*.whl
[ -f "$1" ] || { echo "no wheel in dist/: make wheel" >&2; exit 1; }
[ $# -eq 1 ] || { echo "several wheels in dist/: say which one" >&2; exit 1; }
set -- "$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
cd "$folder"
# The checkout must not shadow the installed package.
unset PYTHONPATH

"$(sh "$checkout/scripts/find_python.sh")" -m venv env
python="$folder/env/bin/python"
install() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }

if "$python" -m zipfile --list "$1" | grep -E '^kueuecore(/(_proof|conformance/|reference/|trials/)|_apiserver/)'; then
    echo "the wheel contains the proof, or the API server for tests: see exclude in pyproject.toml" >&2
    exit 1
fi
for part in assets/page.css assets/page.js templates/layout.html.j2; do
    "$python" -m zipfile --list "$1" | grep "^kueuecore/ui/$part " >/dev/null ||
        { echo "the wheel lacks kueuecore/ui/$part" >&2; exit 1; }
done
if ! "$python" -m zipfile --list "$1" | grep -F kueuecore/agents/rules/02-quota.md >/dev/null; then
    echo "the wheel lacks the rules, which kueuecore mcp serves: see include in pyproject.toml" >&2
    exit 1
fi
install --require-hashes --requirement "$checkout/requirements/runtime.lock"
# No index: the wheel's dependencies must be installed by now.
install --no-index "$1"
"$python" -m pip check
"$python" -I "$checkout/scripts/readme_example.py" "$checkout/README.md"
[ -z "${QUICK:-}" ] || exit 0

install --require-hashes --requirement "$checkout/requirements/test.lock"
install --no-deps "$checkout/python/kueuecore_apiserver"
"$python" -m pip check
cd "$checkout"
"$python" -P -c 'import kueuecore, sys; print(kueuecore.__file__); assert kueuecore.__file__.startswith(sys.prefix)'
# `python -P` and this working directory: the tests import each other and scripts/, but not python/kueuecore.
"$python" -P -m pytest --quiet --numprocesses 2 --dist worksteal --override-ini addopts=--import-mode=importlib -p no:cacheprovider \
    --ignore tests/api/test_doctests.py \
    tests/api tests/property tests/unit/cli tests/unit/policy_tests tests/unit/report/test_report.py tests/unit/ui/test_ui_command.py
