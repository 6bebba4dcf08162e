# The front desk. Everything runs in .venv, which is made on first use and remade when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
BASE := .venv/.base
VENV := .venv/.made
NATIVE := .venv/.native
KERNEL := .venv/.kernel
BROWSER := .venv/.browser

# What the native kernel takes part in; tested with the Python twin as well.
READING := tests/web tests/crawl tests/recrawl tests/search tests/store tests/tables

.PHONY: crawl check test lint lab bench chaos fuzz soak docs lock wheels wheel-check clean

crawl: $(NATIVE)           ## install, then the main job: a demo, or with URL=https://… a crawl of that
	$(if $(URL),$(BIN)/lycosa crawl '$(URL)' --into '$(or $(INTO),crawl)',$(BIN)/lycosa demo)

check: lint                ## before every commit: style, types, fast tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test: lint $(BROWSER)      ## everything CI runs: style, types, fast tests, those of the crawl again without the kernel, slow tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"
	LYCOSA_KERNEL=python $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(READING)
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m slow

lint: $(READY) $(NATIVE)
	$(BIN)/ruff check src tests proof
	$(BIN)/ruff format --check src tests proof
	$(BIN)/mypy

lab: $(READY) $(NATIVE)             ## the experiments of the papers, all of them or with NAME=… one, into docs/results and docs/papers.md; NAME=list names them; ARGS=--quick for a small run
	$(BIN)/python -m proof lab $(or $(NAME),all) $(ARGS)

bench: $(READY) $(NATIVE)           ## the benchmarks: a list, or with NAME=… one of them; ARGS=--quick for a small run
	$(BIN)/python -m proof bench $(NAME) $(ARGS)

chaos: $(READY) $(NATIVE)           ## crawls killed a thousand times, then faults of the machine, into docs/reliability.md; ARGS='--runs 50' for fewer kills, which are shown only
	@code=0; $(BIN)/python -m proof bench chaos --out docs/results $(ARGS) || code=$$?; \
	case $$code in 0|3) ;; *) exit $$code ;; esac; \
	$(BIN)/python -m proof bench machine --out docs/results $(filter --quick,$(ARGS)) || exit $$?; exit $$code

fuzz: $(READY) $(NATIVE)            ## random input for all that reads foreign bytes, 10 minutes a target; kernel and twin agree; ARGS='--only robots --minutes 1' for less, which is shown only
	$(BIN)/python -m proof bench fuzz --out docs/results $(ARGS)

soak: $(READY) $(NATIVE)            ## an hour on a web of which nearly a third is bad; ARGS='--minutes 5' for a shorter one, which is shown only
	$(BIN)/python -m proof bench soak --out docs/results $(ARGS)

lock: $(VENV)              ## versions and digests of all packages, from the registry, in requirements.lock
	$(BIN)/python -m proof.ground.lock

# Sphinx with MyST and furo: it reads the Markdown as it is, checks every link within the book, and its search needs no server.
docs: $(READY)             ## the book as HTML, in build/docs; warnings are errors
	$(BIN)/python docs/commands.py > docs/commands.md
	$(BIN)/lycosa settings --markdown > docs/settings.md
	$(BIN)/python -m proof.pages
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html --doctree-dir build/doctrees docs build/docs
	@echo "open build/docs/index.html"

# Beside the packages the page kernel is built, where cargo is there; without it pages are read by the Python analyser.
MAKEFLAGS += --jobs=2
$(NATIVE): $(BASE) $(KERNEL)
	@if ls .venv/wheels/lycosa_native-*.whl >/dev/null 2>&1; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps .venv/wheels/*.whl; fi
	@touch $@

$(BASE): $(VENV) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# What tests and benchmarks need is installed for them only: a first crawl does not wait for it.
$(READY): $(BASE) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "installing Chromium for the tests of rendering" \
		&& apt-get install --quiet=2 --yes --no-install-recommends chromium >/dev/null; } || echo "Chromium is not there: tests that need it are skipped"
	@touch $@

$(KERNEL): $(VENV) $(wildcard native/src/*) native/Cargo.toml native/Cargo.lock native/pyproject.toml
	@rm -rf .venv/wheels
	@if command -v cargo >/dev/null; then echo "cargo is there: building the native page kernel"; \
		$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir .venv/wheels ./native \
		&& touch $@; \
	else echo "cargo is not there: pages will be read by the Python analyser"; \
		$(BIN)/python -m pip uninstall --quiet --yes lycosa-native 2>/dev/null; fi

# Pages are looked at in a real browser: Debian's Chromium, installed where that may be done. Without it those tests say that they were skipped.
$(BROWSER): $(VENV)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| { echo "installing chromium for the tests in a browser"; \
			{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 \
			|| echo "chromium cannot be installed: tests in a browser are skipped"; }
	@touch $@

# A copied or moved folder needs its own environment: the stamp remembers where it was made.
ifneq ($(shell cat $(VENV) 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)
endif
$(VENV):
	$(PYTHON) -c 'import sys; sys.exit("Lycosa needs Python 3.11 or newer: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear .venv
	@printf %s "$(CURDIR)" > $@

wheels: $(VENV)            ## wheel and sdist of lycosa and, with cargo, a wheel of the page kernel for CPython 3.11+ (manylinux), in dist/
	@command -v cargo >/dev/null || { echo "make wheels needs cargo, which compiles the page kernel"; exit 1; }
	@rm -rf dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin[zig]>=1.9,<2' 'hatchling>=1.25'
	$(BIN)/python -m hatchling build --directory dist
	PATH="$(CURDIR)/$(BIN):$$PATH" maturin build --quiet --release --zig --compatibility manylinux2014 --manifest-path native/Cargo.toml --out dist
	@ls dist

wheel-check: wheels        ## installs what make wheels wrote into an empty environment, and uses it there
	@rm -rf .venv/clean && $(PYTHON) -m venv .venv/clean
	.venv/clean/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd .venv/clean && bin/lycosa --version && bin/lycosa doctor --json && bin/lycosa demo --seconds 2
	.venv/clean/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.tar.gz
	cd .venv/clean && bin/python -m lycosa --version
	@rm -rf .venv/clean

clean:
	rm -rf native/target build dist .proof .venv .pytest_cache .mypy_cache .ruff_cache
