# All developer commands. Needs Python >= 3.11, cargo and make; everything else is installed into .venv, at locked versions.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV ?= .venv
PYTHON ?=
# The build profile of the extension in .venv. Users get release, but it takes minutes to link: only wheel and benches use it.
PROFILE ?= develop
PYTEST_ARGS ?=
CONFORMANCE ?= ../shared/conformance
CONFORMANCE_ARGS ?=

PY := $(abspath $(VENV))/bin/python
STAMPS := $(VENV)/.stamps
RUST_SOURCES := $(shell find rust -name target -prune -o -path rust/proof -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print)
PROOF_SOURCES := $(shell find rust/proof -name '*.rs' -o -name '*.toml')

# Stop cargo from picking another Python: the extension is for the one in the venv.
export PYO3_PYTHON := $(PY)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: dev
dev: $(STAMPS)/extension $(STAMPS)/proof ## create .venv with the locked tools, and build both extensions into it: the product's and the proof's
	@echo 'ready: . $(VENV)/bin/activate'

.PHONY: release
release: ## build the release extension into .venv; the next `make dev` or test replaces it
	@$(MAKE) --no-print-directory PROFILE=release $(STAMPS)/extension

.PHONY: demo
demo: $(STAMPS)/extension ## run every example
	@for example in examples/*/; do \
		if [ -f "$$example/demo.py" ]; then set -- $(PY) "$${example}demo.py"; \
		elif [ -f "$$example/controller.py" ]; then set -- $(PY) -m pytest --quiet tests/unit/kubernetes/test_checks.py; \
		elif ls "$$example"*_test.yaml >/dev/null 2>&1; then set -- $(VENV)/bin/kueuecore test "$${example%/}"; \
		elif [ "$$example" = examples/mistakes/ ]; then set -- $(VENV)/bin/kueuecore check "$${example%/}"; \
		elif [ "$$example" = examples/upgrade/ ]; then set -- $(VENV)/bin/kueuecore upgrade "$${example%/}" --to 0.19; \
		elif [ -f "$$example/scenario.yaml" ]; then eval "set -- $$(sed -n 's,^[$$] kueuecore,$(VENV)/bin/kueuecore,p' "$${example}README.md" | head -1)"; \
		else set -- $(VENV)/bin/kueuecore run "$${example%/}"; fi; \
		printf '\n==== %s\n\n' "$$(echo "$$*" | sed 's,$(abspath $(VENV))/bin/,,; s,$(VENV)/bin/,,')"; \
		"$$@" || [ "$$example$$?" = examples/mistakes/1 ] || exit 1; \
	done

.PHONY: test
test: test-rust test-python test-slow ## run all tests

.PHONY: test-rust
test-rust: toolchain ## run only the Rust tests, including recorded worlds (needs no Python)
	cargo test --locked --quiet

.PHONY: test-python
test-python: $(STAMPS)/extension $(STAMPS)/proof ## run only the Python tests; PYTEST_ARGS='-k name -x' goes to pytest
	$(PY) -m pytest --quiet --numprocesses auto --dist worksteal -m 'not slow' $(PYTEST_ARGS)

.PHONY: test-slow
test-slow: $(STAMPS)/extension $(STAMPS)/proof ## run the tests that take minutes and need an idle machine: two days in a cluster
	$(PY) -m pytest --quiet -m slow $(PYTEST_ARGS)

.PHONY: worlds
worlds: $(STAMPS)/extension $(STAMPS)/proof ## test thousands of random worlds: invariants, and the engine against the reference
	HYPOTHESIS_PROFILE=ci $(PY) -m pytest --quiet --numprocesses auto --dist worksteal tests/property tests/differential $(PYTEST_ARGS)

WORLDS ?=
SECONDS ?= $(if $(WORLDS),86400,60)
SEED ?=
.PHONY: fuzz
fuzz: $(STAMPS)/extension $(STAMPS)/proof ## fuzz with random worlds for SECONDS=60, or WORLDS=... of them, on all cores; SEED=... repeats a run
	$(PY) scripts/fuzz.py --seconds $(SECONDS) $(if $(WORLDS),--worlds $(WORLDS)) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-contests
fuzz-contests: $(STAMPS)/extension $(STAMPS)/proof ## fuzz with worlds of heavy contention: deep trees, crowds of candidates
	$(PY) scripts/fuzz.py --contests --seconds $(SECONDS) $(if $(WORLDS),--worlds $(WORLDS)) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-topologies
fuzz-topologies: $(STAMPS)/extension $(STAMPS)/proof ## fuzz with worlds of nodes that fail, fill up and recover
	$(PY) scripts/fuzz.py --topologies --seconds $(SECONDS) $(if $(WORLDS),--worlds $(WORLDS)) $(if $(SEED),--seed $(SEED))

RELEASE ?= 0.19
.PHONY: oracle
oracle: ## build the player of a released Kueue, RELEASE=0.19 or 0.17; needs Go, and minutes the first time
	go build -C tests/oracle/$(RELEASE) -ldflags="-s -w" -o $(abspath .cache/oracle/kueue-$(RELEASE)) .

.PHONY: fuzz-kueue
fuzz-kueue: $(STAMPS)/extension $(STAMPS)/proof ## fuzz against a released Kueue, RELEASE=0.19 or 0.17 for SECONDS=60; needs `make oracle RELEASE=...`
	$(PY) -m scripts.fuzz_kueue --release $(RELEASE) --seconds $(SECONDS) $(if $(WORLDS),--worlds $(WORLDS)) \
		$(if $(SEED),--seed $(SEED)) $(FUZZ_ARGS)

HISTORIES ?= 10000
.PHONY: fuzz-controller
fuzz-controller: $(STAMPS)/extension ## fuzz a controller with lost events, refused writes and kills, HISTORIES=10000; SEED=... repeats a run
	$(PY) scripts/fuzz_histories.py controller --histories $(HISTORIES) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-http
fuzz-http: $(STAMPS)/extension ## fuzz `kueuecore serve` against a server that fails, hangs up, forgets and is slow, HISTORIES=10000; SEED=...
	$(PY) scripts/fuzz_histories.py http --histories $(HISTORIES) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-fleet
fuzz-fleet: $(STAMPS)/extension ## fuzz a MultiKueue manager and its workers with losses, disconnections and restarts, HISTORIES=10000; SEED=...
	$(PY) scripts/fuzz_histories.py fleet --histories $(HISTORIES) $(if $(SEED),--seed $(SEED))

.PHONY: day
day: $(STAMPS)/extension ## play a day of 60 jobs on a fake API server, with a lost node and three killed replicas; prints a timeline
	$(PY) -m scripts.day

.PHONY: fuzz-bytes
fuzz-bytes: $(STAMPS)/tools ## fuzz the crates with random bytes on stable Rust, SECONDS=60 per target; SEED=... repeats a run
	$(PY) scripts/fuzz_bytes.py --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(FUZZ_ARGS)

.PHONY: attack
attack: $(STAMPS)/extension ## feed bad input to every entry point for SECONDS=60; SEED=... repeats a run, DOOR= and CASE= one case
	$(PY) -m scripts.attack --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(DOOR),--door $(DOOR)) \
		$(if $(CASE),--case $(CASE))

.PHONY: pictures
pictures: $(STAMPS)/extension ## regenerate the pictures in docs/
	$(PY) -m scripts.pictures
	$(PY) -m scripts.ui_pictures

.PHONY: api
api: $(STAMPS)/extension ## regenerate docs/api.md from the docstrings
	$(PY) -m scripts.api_page

.PHONY: upgrade-page
upgrade-page: $(STAMPS)/extension ## regenerate docs/upgrade.md from the rows and tables in python/kueuecore/releases
	$(PY) -m scripts.upgrade_page

.PHONY: symptoms-page
symptoms-page: $(STAMPS)/extension ## regenerate docs/symptoms.md from the incidents in tests/incidents
	$(PY) -m scripts.symptoms_page

DOCS_VENV := target/docs-venv
.PHONY: docs
docs: $(DOCS_VENV)/.stamp ## build the documentation with search into target/docs/index.html; fails on broken links
	@rm -rf target/docs
	@$(DOCS_VENV)/bin/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --jobs auto --conf-dir docs/site \
		--doctree-dir target/docs-doctrees . target/docs
	@echo 'ready: target/docs/index.html'

$(DOCS_VENV)/.stamp: requirements/docs.lock scripts/find_python.sh
	@"$$(PYTHON='$(PYTHON)' sh scripts/find_python.sh)" -m venv --clear $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install --quiet --require-hashes --requirement requirements/docs.lock
	@touch $@

.PHONY: record-worlds
record-worlds: $(STAMPS)/extension ## regenerate tests/worlds/recorded.jsonl.gz, which the Rust tests compare with
	$(PY) scripts/record_worlds.py

SAMPLE ?= 60
MUTANTS_VERSION := 27.1.0
MUTANTS := target/tools/bin/cargo-mutants
.PHONY: mutants
mutants: toolchain $(MUTANTS) ## mutate the engine and count how many mutants the Rust tests catch; SAMPLE=60 SEED=1, or SAMPLE=all
	@PATH="$(CURDIR)/$(dir $(MUTANTS)):$$PATH" "$$(PYTHON='$(PYTHON)' sh scripts/find_python.sh)" scripts/mutants.py \
		--sample $(SAMPLE) --seed $(or $(SEED),1)

$(MUTANTS): Makefile
	@$(MUTANTS) mutants --version 2>/dev/null | grep -qF $(MUTANTS_VERSION) || \
		cargo install cargo-mutants --quiet --locked --version $(MUTANTS_VERSION) --root target/tools
	@touch $@

.PHONY: lint
lint: $(STAMPS)/tools ## check formatting, lints, and imports between modules
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	@! command -v gofmt >/dev/null || { unformatted=$$(gofmt -l tests/oracle); test -z "$$unformatted" || { echo "gofmt -w $$unformatted"; exit 1; }; }
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
		{ echo 'missing: rustfmt and clippy: rustup component add rustfmt clippy'; exit 1; }
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	@# The fuzzer has its own workspace and lock file, which a new dependency here makes outdated.
	cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
	PYTHONPATH=python $(VENV)/bin/lint-imports --no-logo --no-cache
	$(PY) scripts/rooms.py

.PHONY: format
format: $(STAMPS)/tools ## apply the formatting that lint checks
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	cargo fmt --all

.PHONY: types
types: $(STAMPS)/extension $(STAMPS)/proof ## run mypy --strict on everything, and check the stub against the extension
	$(PY) -m mypy python/kueuecore python/kueuecore_apiserver tests scripts benches
	for example in examples/*/*.py; do $(PY) -m mypy "$$example" || exit 1; done
	$(PY) -m mypy.stubtest kueuecore._core kueuecore._proof --mypy-config-file pyproject.toml

.PHONY: conformance
conformance: $(STAMPS)/extension $(STAMPS)/proof ## compare with recorded answers of the real Kueue, if available
	@if [ -f "$(CONFORMANCE)/check.py" ]; then \
		set -ex; $(PY) "$(CONFORMANCE)/check.py" --known tests/conformance/known.txt $(CONFORMANCE_ARGS); \
		$(PY) "$(CONFORMANCE)/check.py" --known tests/conformance/known.txt "$(CONFORMANCE)/traces" \
			"$(CONFORMANCE)/traces-topology" "$(CONFORMANCE)/found" "$(CONFORMANCE)/found-november" \
			"$(CONFORMANCE)"/scale/baseline-*.jsonl.gz; \
		for line in 0.16 0.17 0.18 0.19; do $(PY) "$(CONFORMANCE)/check.py" --known tests/conformance/known-$$line.txt \
			"$(CONFORMANCE)"/releases/v$$line.*.jsonl.gz; done; \
		$(PY) scripts/server_verdicts.py "$(CONFORMANCE)"/server/*.jsonl.gz; \
	else \
		echo 'conformance: skipped, no $(CONFORMANCE) here'; \
	fi

.PHONY: conformance-reference
conformance-reference: $(STAMPS)/tools ## the same for the reference model; whole runs take 15 minutes
	@if [ -f "$(CONFORMANCE)/check.py" ]; then \
		set -ex; $(REFERENCE) --known tests/conformance/known-reference.txt $(CONFORMANCE_ARGS); \
		$(REFERENCE) --known tests/conformance/known-reference.txt --seconds 0 "$(CONFORMANCE)/traces" \
			"$(CONFORMANCE)/traces-topology"; \
	else \
		echo 'conformance-reference: skipped, no $(CONFORMANCE) here'; \
	fi

FIDELITY_ARGS ?=
.PHONY: fidelity
fidelity: $(STAMPS)/extension $(STAMPS)/proof ## regenerate docs/fidelity.md: engine and reference against recorded answers; FIDELITY_ARGS='--seconds 60'
	$(PY) scripts/fidelity.py --recorded "$(CONFORMANCE)" $(FIDELITY_ARGS)

REFERENCE = PYTHONPATH=python $(PY) "$(CONFORMANCE)/check.py" --by reference

BENCH_ARGS ?=
.PHONY: bench
bench: release ## measure single steps, whole runs and calls from Python, compared with recorded figures of Kueue
	$(PY) benches/measure.py --scenarios "$(CONFORMANCE)/scale" $(BENCH_ARGS)
	for trust in '' --trusted; do echo && PYTHONPATH=python $(PY) benches/load.py --keep $$trust || exit 1; done
	$(PY) -m pytest benches --quiet --override-ini addopts=--import-mode=importlib --benchmark-only \
		--benchmark-timer=time.process_time --benchmark-columns=min,median,rounds --benchmark-json=.benchmarks/python.json
	PYTHONPATH=python $(PY) benches/threads.py --seconds 5

.PHONY: bench-kueue
bench-kueue: override RELEASE := 0.19
bench-kueue: release oracle ## measure the engine and Kueue 0.19.2 itself in the same states; BENCH_ARGS='borrow --samples 9'
	PYTHONPATH=python $(PY) benches/kueue.py --build release $(BENCH_ARGS)

BASE ?= main
.PHONY: bench-compare
bench-compare: $(STAMPS)/tools ## compare single steps with commit BASE=main: instructions and interleaved times; BENCH_ARGS='Cycle --rounds 9'
	$(PY) benches/compare.py $(BASE) $(BENCH_ARGS)

THROUGH ?= 1000000
.PHONY: bench-growth
bench-growth: release ## measure how time and memory grow with size, and after THROUGH=1000000 workloads
	$(PY) benches/growth.py $(BENCH_ARGS)
	PYTHONPATH=python $(PY) benches/endurance.py --workloads $(THROUGH)

DATE ?= $(shell date +%F)
.PHONY: performance
performance: $(STAMPS)/tools ## regenerate docs/performance.md from the last bench, bench-growth and bench-kueue
	$(PY) benches/page.py $(DATE)

.PHONY: bench-scenarios
bench-scenarios: toolchain ## run recorded scenarios through the engine without Python, if available
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && for file in "$(CONFORMANCE)"/scale/*.jsonl.gz; do \
		[ -f "$$file" ] || { echo 'bench-scenarios: none in $(CONFORMANCE)/scale'; exit 0; }; \
		gunzip -c "$$file" > "$$folder/$$(basename "$$file" .jsonl.gz).json"; \
	done && cargo run --locked --quiet --release -p kueuecore-bench --bin scenario -- "$$folder"/*.json

.PHONY: wheel
wheel: $(STAMPS)/tools ## build the wheel into dist/
	rm -rf dist
	$(VENV)/bin/maturin build --release --locked --out dist

.PHONY: lock
lock: $(STAMPS)/tools ## regenerate requirements/*.lock from pyproject.toml with the newest versions
	$(PY) -m pip install --quiet 'uv>=0.13,<0.14'
	$(LOCK) pyproject.toml --output-file requirements/runtime.lock
	$(LOCK) pyproject.toml --group dev --output-file requirements/dev.lock
	$(LOCK) pyproject.toml --group test --constraint requirements/dev.lock --output-file requirements/test.lock
	$(LOCK) --group docs --output-file requirements/docs.lock

LOCK = $(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command 'make lock'

.PHONY: clean
clean: ## remove everything that was built, including .venv
	rm -rf $(VENV) target fuzz/target .cache/bench-compare dist .hypothesis .pytest_cache .mypy_cache .ruff_cache .benchmarks
	rm -f python/kueuecore/_core*.so python/kueuecore/_proof*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Checked before every build, to report a missing tool in plain words rather than as a compiler error.
.PHONY: toolchain
toolchain:
	@PYTHON='$(PYTHON)' sh scripts/find_python.sh >/dev/null

$(STAMPS)/tools: requirements/dev.lock scripts/find_python.sh | toolchain
	@echo 'installing the locked tools into $(VENV)'
	@"$$(PYTHON='$(PYTHON)' sh scripts/find_python.sh)" -m venv $(VENV)
	@$(PY) -m pip install --quiet --require-hashes --requirement requirements/dev.lock
	@mkdir -p $(STAMPS) && touch $@

# Changes with the profile, so that the extension is rebuilt.
$(STAMPS)/profile-$(PROFILE): $(STAMPS)/tools
	@rm -f $(STAMPS)/profile-* && touch $@

$(STAMPS)/extension: $(STAMPS)/tools $(STAMPS)/profile-$(PROFILE) $(RUST_SOURCES) Cargo.toml Cargo.lock pyproject.toml | toolchain
	@echo 'building the extension ($(PROFILE))'
	@. $(VENV)/bin/activate && PIP_QUIET=1 maturin develop --quiet --profile $(PROFILE) --locked
	@touch $@

# Runs recorded cases through the engine. It is built next to the product's extension, and is never in the wheel.
$(STAMPS)/proof: $(STAMPS)/extension $(PROOF_SOURCES) | toolchain
	@echo 'building the proof extension ($(PROFILE))'
	@. $(VENV)/bin/activate && PIP_QUIET=1 maturin develop --quiet --skip-install --manifest-path rust/proof/Cargo.toml \
		--profile $(PROFILE) --locked
	@touch $@
