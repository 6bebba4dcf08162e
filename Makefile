# The front desk. Everything runs in .venv, which is made on first use and remade when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: crawl test lint bench-simweb clean

crawl: $(READY)            ## install, then the main job
	$(BIN)/lycosa simweb show

test: lint                 ## everything CI runs: style, types, fast tests, slow tests
	$(BIN)/python -m pytest -n 2 -m "not slow"
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

bench-simweb: $(READY)     ## pages a second and memory of the simulated web, driven by wrk
	$(BIN)/python -m benchmarks.simweb

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Lycosa needs Python 3.11 or newer: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache
