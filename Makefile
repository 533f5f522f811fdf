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
DEV := $(STAMPS)/tools $(STAMPS)/extension
RUST_SOURCES := $(shell find rust -name target -prune -o -path rust/proof -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print)
PROOF_SOURCES := $(shell find rust/proof -name '*.rs' -o -name '*.toml')

# Stop cargo from picking another Python: the extension is for the one in the venv.
export PYO3_PYTHON := $(PY)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: dev
dev: $(DEV) $(STAMPS)/proof ## create .venv with the locked tools, and build both extensions into it: the product's and the proof's
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
		elif [ -d "$$example/tests" ]; then set -- $(VENV)/bin/kueuecore test "$${example}tests"; \
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
	@echo 'testing the Rust crates, with recorded worlds: two minutes on two cores the first time, most of them to compile'
	cargo test --locked --quiet

.PHONY: test-python
test-python: $(DEV) $(STAMPS)/proof ## run only the Python tests; PYTEST_ARGS='-k name -x' goes to pytest
	@echo 'testing from Python, on all cores: 13 minutes on two'
	$(PY) -m pytest --quiet --numprocesses auto --dist worksteal -m 'not slow' $(PYTEST_ARGS)

.PHONY: test-slow
test-slow: $(DEV) $(STAMPS)/proof ## run the tests that take minutes and need an idle machine: two days in a cluster
	@echo 'testing two days in a cluster: four minutes'
	$(PY) -m pytest --quiet -m slow $(PYTEST_ARGS)

.PHONY: worlds
worlds: $(DEV) $(STAMPS)/proof ## test thousands of random worlds: invariants, and the engine against the reference
	HYPOTHESIS_PROFILE=ci $(PY) -m pytest --quiet --numprocesses auto --dist worksteal tests/property tests/differential $(PYTEST_ARGS)

WORLDS ?=
SECONDS ?= $(if $(WORLDS),86400,60)
SEED ?=
.PHONY: fuzz
fuzz: $(DEV) $(STAMPS)/proof ## fuzz with random worlds for SECONDS=60, or WORLDS=... of them, on all cores; SEED=... repeats a run
	$(PY) scripts/fuzz.py --seconds $(SECONDS) $(if $(WORLDS),--worlds $(WORLDS)) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-contests
fuzz-contests: $(DEV) $(STAMPS)/proof ## fuzz with worlds of heavy contention: deep trees, crowds of candidates
	$(PY) scripts/fuzz.py --contests --seconds $(SECONDS) $(if $(WORLDS),--worlds $(WORLDS)) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-topologies
fuzz-topologies: $(DEV) $(STAMPS)/proof ## fuzz with worlds of nodes that fail, fill up and recover
	$(PY) scripts/fuzz.py --topologies --seconds $(SECONDS) $(if $(WORLDS),--worlds $(WORLDS)) $(if $(SEED),--seed $(SEED))

RELEASE ?= 0.19
JUDGE_ARGS ?=
.PHONY: oracle
oracle: ## build the player of a released Kueue, RELEASE=0.19 or 0.17; needs Go, and minutes the first time
	go build -C tests/oracle/$(RELEASE) -ldflags="-s -w" -o $(abspath .cache/oracle/kueue-$(RELEASE)) .

.PHONY: fuzz-kueue
fuzz-kueue: $(DEV) $(STAMPS)/proof ## fuzz against a released Kueue, RELEASE=0.19 or 0.17 for SECONDS=60; needs `make oracle RELEASE=...`
	$(PY) -m scripts.fuzz_kueue --release $(RELEASE) --seconds $(SECONDS) $(if $(WORLDS),--worlds $(WORLDS)) \
		$(if $(SEED),--seed $(SEED)) $(FUZZ_ARGS)

.PHONY: judge-proofs
judge-proofs: $(DEV) $(STAMPS)/proof ## search examples and docs with `prove`, and let a released Kueue play what it finds, RELEASE=0.19; needs `make oracle`
	$(PY) -m scripts.judge_proofs --release $(RELEASE) $(JUDGE_ARGS)

HISTORIES ?= 10000
.PHONY: fuzz-controller
fuzz-controller: $(DEV) ## fuzz a controller with lost events, refused writes and kills, HISTORIES=10000; SEED=... repeats a run
	$(PY) scripts/fuzz_histories.py controller --histories $(HISTORIES) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-http
fuzz-http: $(DEV) ## fuzz `kueuecore serve` against a server that fails, hangs up, forgets and is slow, HISTORIES=10000; SEED=...
	$(PY) scripts/fuzz_histories.py http --histories $(HISTORIES) $(if $(SEED),--seed $(SEED))

.PHONY: fuzz-fleet
fuzz-fleet: $(DEV) ## fuzz a MultiKueue manager and its workers with losses, disconnections and restarts, HISTORIES=10000; SEED=...
	$(PY) scripts/fuzz_histories.py fleet --histories $(HISTORIES) $(if $(SEED),--seed $(SEED))

.PHONY: day
day: $(DEV) ## play a day of 60 jobs on a fake API server, with a lost node and three killed replicas; prints a timeline
	$(PY) -m scripts.day

.PHONY: fuzz-bytes
fuzz-bytes: $(STAMPS)/tools ## fuzz the crates with random bytes on stable Rust, SECONDS=60 per target; SEED=... repeats a run
	$(PY) scripts/fuzz_bytes.py --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(FUZZ_ARGS)

.PHONY: attack
attack: $(DEV) ## feed bad input to every entry point for SECONDS=60; SEED=... repeats a run, DOOR= and CASE= one case
	$(PY) -m scripts.attack --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(DOOR),--door $(DOOR)) \
		$(if $(CASE),--case $(CASE))

.PHONY: pictures
pictures: $(DEV) ## regenerate the pictures in docs/
	$(PY) -m scripts.pictures
	$(PY) -m scripts.ui_pictures

.PHONY: notebooks
notebooks: $(DEV) ## run the notebooks in docs/notebooks, and store what their cells return and print
	$(PY) -m scripts.notebooks

.PHONY: api
api: $(DEV) ## regenerate docs/api.md from the docstrings
	$(PY) -m scripts.api_page

.PHONY: upgrade-page
upgrade-page: $(DEV) ## regenerate docs/upgrade.md from the rows and tables in python/kueuecore/releases
	$(PY) -m scripts.upgrade_page

.PHONY: symptoms-page
symptoms-page: $(DEV) ## regenerate docs/symptoms.md from the incidents in tests/incidents
	$(PY) -m scripts.symptoms_page

.PHONY: playground
playground: $(STAMPS)/extension ## build the page that decides in the browser, target/playground.html; needs npm, and Rust for wasm32-wasip1
	@PYTHON=$(PY) sh scripts/build_playground.sh

DOCS_VENV := target/docs-venv
.PHONY: docs
docs: $(DOCS_VENV)/.stamp ## build the documentation with search into target/docs/index.html; fails on broken links
	@rm -rf target/docs
	@$(DOCS_VENV)/bin/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --jobs auto --conf-dir docs/site \
		--doctree-dir target/docs-doctrees . target/docs
	@[ ! -f target/playground.html ] || cp target/playground.html target/docs/
	@echo 'ready: target/docs/index.html'

.PHONY: docs-search
docs-search: docs $(DEV) ## build the documentation, and try its search in a browser
	SITE=target/docs $(PY) -m pytest -q tests/browser/test_site_search.py

$(DOCS_VENV)/.stamp: requirements/docs.lock scripts/find_python.sh
	@"$$(PYTHON='$(PYTHON)' sh scripts/find_python.sh)" -m venv --clear $(DOCS_VENV)
	@$(DOCS_VENV)/bin/python -m pip install --quiet --require-hashes --requirement requirements/docs.lock
	@touch $@

.PHONY: record-worlds
record-worlds: $(DEV) ## regenerate tests/worlds/recorded.jsonl.gz, which the Rust tests compare with
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
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' || { echo 'a merge was not finished'; exit 1; }
	@! command -v gofmt >/dev/null || { unformatted=$$(gofmt -l tests/oracle tests/unit/deploy); test -z "$$unformatted" || { echo "gofmt -w $$unformatted"; exit 1; }; }
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
types: $(DEV) $(STAMPS)/proof ## run mypy --strict on everything, and check the stub against the extension
	$(PY) -m mypy python/kueuecore python/kueuecore_apiserver tests scripts benches
	for example in examples/*/*.py; do $(PY) -m mypy "$$example" || exit 1; done
	$(PY) -m mypy.stubtest kueuecore._core kueuecore._proof --mypy-config-file pyproject.toml

.PHONY: conformance
conformance: $(DEV) $(STAMPS)/proof ## compare with recorded answers of the real Kueue, if available
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
fidelity: $(DEV) $(STAMPS)/proof ## regenerate docs/fidelity.md: engine and reference against recorded answers; FIDELITY_ARGS='--seconds 60'
	$(PY) scripts/fidelity.py --recorded "$(CONFORMANCE)" $(FIDELITY_ARGS)

REFERENCE = PYTHONPATH=python $(PY) "$(CONFORMANCE)/check.py" --by reference

LOGS ?= ../shared/logs
FORECAST_ARGS ?=
.PHONY: forecast
forecast: $(DEV) ## regenerate docs/forecast.md: ask eta on LOGS=... of real machines; FORECAST_ARGS=--page only writes it
	PYTHONPATH=python $(PY) -m benches.forecast $(LOGS) $(FORECAST_ARGS)

.PHONY: forecast-quick
forecast-quick: $(DEV) ## compare forecasts with recorded figures, on a generated log and on LOGS=... if there; check simulated ones
	PYTHONPATH=python $(PY) -m benches.forecast.quick $(LOGS) $(FORECAST_ARGS)
	$(PY) -m scripts.calibrate_eta --waits 100 --workers 2 --check

BENCH_ARGS ?=
.PHONY: bench
bench: $(STAMPS)/tools release ## measure single steps, whole runs and calls from Python, compared with recorded figures of Kueue
	$(PY) benches/measure.py --scenarios "$(CONFORMANCE)/scale" $(BENCH_ARGS)
	for trust in '' --trusted; do echo && PYTHONPATH=python $(PY) benches/load.py --keep $$trust || exit 1; done
	$(PY) -m pytest benches --quiet --override-ini addopts=--import-mode=importlib --benchmark-only \
		--benchmark-timer=time.process_time --benchmark-columns=min,median,rounds --benchmark-json=.benchmarks/python.json
	PYTHONPATH=python $(PY) benches/threads.py --seconds 5

.PHONY: bench-kueue
bench-kueue: override RELEASE := 0.19
bench-kueue: $(STAMPS)/tools release oracle ## measure the engine and Kueue 0.19.2 itself in the same states; BENCH_ARGS='borrow --samples 9'
	PYTHONPATH=python $(PY) benches/kueue.py --build release $(BENCH_ARGS)

BASE ?= main
.PHONY: bench-compare
bench-compare: $(STAMPS)/tools ## compare single steps with commit BASE=main: instructions and interleaved times; BENCH_ARGS='Cycle --rounds 9'
	$(PY) benches/compare.py $(BASE) $(BENCH_ARGS)

THROUGH ?= 1000000
.PHONY: bench-growth
bench-growth: $(STAMPS)/tools release ## measure how time and memory grow with size, and after THROUGH=1000000 workloads
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

DIST_VENV := target/dist-venv
DIST_ARGS ?=
.PHONY: dist
dist: $(DIST_VENV)/.stamp | toolchain ## build and check all that is published from here, into dist/: wheels for Linux, sources; half an hour of CPU time
	@PATH="$(CURDIR)/$(DIST_VENV)/bin:$$PATH" env -u PYO3_PYTHON $(DIST_VENV)/bin/python -m scripts.dist $(DIST_ARGS)

.PHONY: check-extras
check-extras: $(DIST_VENV)/.stamp ## install each extra alone from the wheel in dist/, and use it once; EXTRAS='ui mcp' picks some
	@PATH="$(CURDIR)/$(DIST_VENV)/bin:$$PATH" $(DIST_VENV)/bin/python -m scripts.extras \
		"$$(ls dist/kueuecore-*"$$(uname -m)".whl | head -1)" $(EXTRAS)

$(DIST_VENV)/.stamp: requirements/dist.lock scripts/install_locked.sh | toolchain
	@PYTHON='$(PYTHON)' sh scripts/install_locked.sh $(DIST_VENV) requirements/dist.lock
	@touch $@

VERSION ?=
.PHONY: version
version: ## write the version of Cargo.toml into every file that has a copy; VERSION=0.2.0 makes it that
	@"$$(PYTHON='$(PYTHON)' sh scripts/find_python.sh)" -m scripts.version_copies $(VERSION)
	@cargo update --workspace --quiet && cargo update --workspace --quiet --manifest-path fuzz/Cargo.toml

IMAGE ?= kueuecore
WHEEL ?=
CONTAINERS ?= $(firstword $(foreach tool,podman docker buildah,$(shell command -v $(tool))))
.PHONY: image
image: $(if $(WHEEL),,wheel) ## build the image of `kueuecore serve` from locked requirements and the wheel, or WHEEL=dist/...; IMAGE=kueuecore
	@[ -n '$(CONTAINERS)' ] || { echo 'missing: podman, docker or buildah, which build images'; exit 1; }
	$(CONTAINERS) build --file deploy/Containerfile --tag $(IMAGE) --build-arg WHEEL="$$(basename $(or $(WHEEL),dist/*.whl))" \
		--build-arg VERSION="$$(basename $(or $(WHEEL),dist/*.whl) | cut -d- -f2)" --build-arg REVISION="$$(git rev-parse HEAD)" .

.PHONY: lock
lock: $(STAMPS)/tools ## regenerate requirements/*.lock from pyproject.toml with the newest versions
	$(LOCK) pyproject.toml --output-file requirements/runtime.lock
	$(LOCK) pyproject.toml --group dev --output-file requirements/dev.lock
	$(LOCK) pyproject.toml --group demo --constraint requirements/dev.lock --output-file requirements/demo.lock
	$(LOCK) --group uv --constraint requirements/dev.lock --output-file requirements/uv.lock
	$(LOCK) pyproject.toml --extra serve --constraint requirements/dev.lock --output-file requirements/serve.lock
	$(LOCK) pyproject.toml --group test --constraint requirements/dev.lock --output-file requirements/test.lock
	$(LOCK) --group dist --constraint requirements/dev.lock --output-file requirements/dist.lock
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

INSTALL = PYTHON='$(PYTHON)' sh scripts/install_locked.sh $(VENV)

$(STAMPS)/demo: requirements/demo.lock requirements/uv.lock scripts/find_python.sh scripts/install_locked.sh | toolchain
	@$(INSTALL) requirements/demo.lock
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/tools: $(STAMPS)/demo requirements/dev.lock
	@$(INSTALL) requirements/dev.lock
	@touch $@

# Changes with the profile, so that the extension is rebuilt.
$(STAMPS)/profile-$(PROFILE): $(STAMPS)/demo
	@rm -f $(STAMPS)/profile-* && touch $@

# Progress is for people; logs stay short.
MATURIN = . $(VENV)/bin/activate && PIP_QUIET=1 UV_QUIET=1 maturin develop $$([ -t 2 ] || echo --quiet) \
	$$(command -v uv >/dev/null && echo --uv) --profile $(PROFILE) --locked

$(STAMPS)/extension: $(STAMPS)/demo $(STAMPS)/profile-$(PROFILE) $(RUST_SOURCES) Cargo.toml Cargo.lock pyproject.toml | toolchain
	@echo 'building the extension ($(PROFILE)), which takes a minute the first time'
	@$(MATURIN)
	@touch $@

# Runs recorded cases through the engine. It is built next to the product's extension, and is never in the wheel.
$(STAMPS)/proof: $(STAMPS)/extension $(PROOF_SOURCES) | toolchain
	@echo 'building the proof extension ($(PROFILE))'
	@$(MATURIN) --skip-install --manifest-path rust/proof/Cargo.toml
	@touch $@
