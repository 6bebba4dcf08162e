# The front desk. Everything runs in .venv, which is made on first use and remade when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
NATIVE := .venv/.native

.PHONY: crawl check test lint lab bench clean

crawl: $(NATIVE)           ## install, then the main job: a demo, or with URL=https://… a crawl of that
	$(if $(URL),$(BIN)/lycosa crawl '$(URL)' --into '$(or $(INTO),crawl)',$(BIN)/lycosa demo)

check: lint                ## before every commit: style, types, fast tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test: lint                 ## everything CI runs: style, types, fast tests, slow tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

lint: $(NATIVE)
	$(BIN)/ruff check src tests proof
	$(BIN)/ruff format --check src tests proof
	$(BIN)/mypy

lab: $(NATIVE)             ## the experiments of the papers: a list, or with NAME=… one of them; ARGS=--quick for a small run
	$(BIN)/python -m proof lab $(NAME) $(ARGS)

bench: $(NATIVE)           ## the benchmarks: a list, or with NAME=… one of them; ARGS=--quick for a small run
	$(BIN)/python -m proof bench $(NAME) $(ARGS)

# A copied or moved folder needs its own environment: the stamp remembers where it was made.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif
$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Lycosa needs Python 3.11 or newer: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(BIN)/python -c '' 2>/dev/null && test "$$(cat $@ 2>/dev/null)" = "$(CURDIR)" || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	printf %s "$(CURDIR)" > $@

# The page kernel is built where cargo is there; without it pages are read by the Python analyser.
$(NATIVE): $(READY) $(wildcard native/src/*) native/Cargo.toml native/Cargo.lock native/pyproject.toml
	@if command -v cargo >/dev/null; then \
		echo "cargo is there: building the native page kernel (half a minute)"; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check ./native; \
	else echo "cargo is not there: pages will be read by the Python analyser"; fi
	@touch $@

clean:
	rm -rf native/target .venv .pytest_cache .mypy_cache .ruff_cache
