# The front desk. Everything runs in .venv, which is made on first use and remade when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: crawl test lint bench bench-site bench-peers bench-wide bench-documents bench-memory bench-frontier bench-policies bench-rank bench-profile \
	bench-search bench-simweb bench-trie bench-augment bench-tables bench-workers bench-faults bench-elastic bench-scale clean

crawl: $(READY)            ## install, then the main job: a demo, or with URL=https://… a crawl of that
	$(if $(URL),$(BIN)/lycosa crawl '$(URL)' --into '$(or $(INTO),crawl)',$(BIN)/lycosa demo)

test: lint                 ## everything CI runs: style, types, fast tests, slow tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

bench:                     ## every scenario in turn, to the last even if one falls short; an hour
	$(MAKE) -j1 --keep-going bench-site bench-peers bench-wide bench-documents bench-memory bench-frontier bench-policies bench-rank bench-search bench-simweb bench-trie bench-augment bench-tables bench-workers bench-faults bench-elastic bench-scale

bench-site: $(READY)       ## one site as fast as it goes, beside Scrapy and the floor; ARGS=--quick for a small one
	$(BIN)/python -m benchmarks.site $(ARGS)

bench-peers: $(READY)      ## one site as fast as it goes, beside Heritrix and Scrapy, in turns; ARGS=--quick for a small one
	$(BIN)/python -m benchmarks.peers $(ARGS)

bench-wide: $(READY)       ## 1,000 slow hosts at their politest: how near to the rate that politeness allows
	$(BIN)/python -m benchmarks.wide $(ARGS)

bench-documents: $(READY)  ## real files with copies among them: is each document kept once, and no other
	$(BIN)/python -m benchmarks.documents $(ARGS)

bench-memory: $(READY)     ## 200,000 pages: does memory stay where it was at 20,000
	$(BIN)/python -m benchmarks.memory $(ARGS)

bench-frontier: $(READY)   ## ten million known URLs: memory, seen tests a second, bytes a URL, opening
	$(BIN)/python -m benchmarks.frontier $(ARGS)

bench-policies: $(READY)   ## what policies cost: the frontier alone, URLs a second, and a real site, CPU a page
	$(BIN)/python -m benchmarks.policies $(ARGS)
	$(BIN)/python -m benchmarks.site_policies $(ARGS)

bench-rank: $(READY)       ## PageRank of 1,000,000 pages with 20,000,000 links, from a collection on disk
	$(BIN)/python -m benchmarks.rank $(ARGS)

bench-search: $(READY)     ## known-item search on three sets, answers of 100,000 documents, what the index adds to a crawl
	$(BIN)/python -m benchmarks.search $(ARGS)
	$(BIN)/python -m benchmarks.search_speed
	$(BIN)/python -m benchmarks.search_cost

bench-profile: $(READY)    ## where the time of bench-site goes, function by function
	$(BIN)/python -m benchmarks.site_profile $(ARGS)

bench-simweb: $(READY)     ## pages a second and memory of the simulated web, driven by wrk
	$(BIN)/python -m benchmarks.simweb

bench-workers: $(READY)    ## what shards cost: --workers 1 and 2 beside one process
	$(BIN)/python -m benchmarks.workers $(ARGS)

bench-faults: $(READY)     ## two Ray nodes on this machine: what is killed, frozen or cut off, and what becomes of the crawl
	$(BIN)/python -m benchmarks.faults $(ARGS)

bench-elastic: $(READY)    ## shards join and leave in the middle of a crawl: who pauses, what moves
	$(BIN)/python -m benchmarks.elastic $(ARGS)

bench-scale: $(READY)      ## 1 to 8 agents and a web that is far away: do they add up
	$(BIN)/python -m benchmarks.scale $(ARGS)

bench-trie: $(READY)       ## two million real URLs: bytes a URL in memory and on disk, and what a question costs
	$(BIN)/python -m benchmarks.trie $(ARGS)

bench-augment: $(READY)    ## lycosa augment over 530 documents: how fast, and is every table right
	$(BIN)/python -m benchmarks.augment $(ARGS)

bench-tables: $(READY)     ## tables of links on real documentation, by virtual time: what is there to save
	$(BIN)/python -m benchmarks.tables $(ARGS)

# A copied or moved folder needs its own environment: the stamp remembers where it was made.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif
$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Lycosa needs Python 3.11 or newer: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(BIN)/python -c '' 2>/dev/null && test "$$(cat $@ 2>/dev/null)" = "$(CURDIR)" || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	printf %s "$(CURDIR)" > $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache
