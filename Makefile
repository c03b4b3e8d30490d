# Targets are documented by the comment after `##`; `make` alone prints them.
BUN := node_modules/.bin/bun
BIN := dist/neurarch-gate
VERSION := $(shell sed -n 's/^  "version": "\(.*\)",/\1/p' package.json)
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo release)
DAY := $(shell [ -n "$$SOURCE_DATE_EPOCH" ] && date -u -d "@$$SOURCE_DATE_EPOCH" +%F || TZ=UTC git log -1 --date=format-local:%F --format=%cd 2>/dev/null || date -u +%F)
TARGET := $(shell uname -s | tr A-Z a-z)-$(shell uname -m)
DIGESTS := $(foreach one,catalogue=src/model/catalogue.jsonl lua=lua/cli_filter.lua python=python-shim/neurarch_gate/__init__.py,$(firstword $(subst =, ,$(one)))=$(firstword $(shell sha256sum $(lastword $(subst =, ,$(one))))))
SOURCES := $(shell find src lua python-shim -type f 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help build cross dist dist-check schemas man check format test bridge-real slurm-newer bench bench-smoke fuzz load oracle accuracy clean

help: ## Print this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: $(BIN) ## Build the executable, dist/neurarch-gate

# What the flags are for: bytecode, a chunk a command (no module has side effects, so small ones are put together)
# and a late JIT for start-up (a submit is over before a compiler thread has paid for itself); identifiers stay whole, since minified ones have collided; no file of the working directory (.env, bunfig.toml, tsconfig.json, package.json) is read.
# It is built twice: what the first one runs through in a submit whose size is kept is laid first in the second, so
# that a start touches fewer pages (0.3 ms of 9). A run that cannot be made leaves the first order.
BUN_TARGET := bun
COMPILE = $(BUN) build --compile --target=$(BUN_TARGET) --format=esm --bytecode --splitting --min-chunk-size=65536 --minify-syntax --minify-whitespace \
	  --compile-jit-policy=1000 \
	  --no-compile-autoload-dotenv --no-compile-autoload-bunfig \
	  --no-compile-autoload-tsconfig --no-compile-autoload-package-json \
	  --compile-exec-argv="--use-system-ca" \
	  --define BUILD_VERSION='"$(VERSION)"' --define BUILD_COMMIT='"$(COMMIT)"' --define BUILD_TARGET='"$(TARGET)"' --define BUILD_DAY='"$(DAY)"' \
	  --define BUILD_DIGESTS='"$(DIGESTS)"' \
	  src/main.ts
ORDER := dist/submit.order
$(ORDER): $(SOURCES) package-lock.json Makefile packaging/submit-order.sh
	@rm -rf dist/first && mkdir -p dist/first
	$(COMPILE) --outfile dist/first/neurarch-gate
	@sh packaging/submit-order.sh dist/first $(ORDER) && rm -rf dist/first
ORDERED = $$([ -s $(ORDER) ] && echo --bytecode-order=$(ORDER))
$(BIN): $(ORDER)
	$(COMPILE) $(ORDERED) --outfile $(BIN)

# For packaging/: one target on a runtime that was fetched, in the order that a submit on this machine had.
cross: $(ORDER)
	$(COMPILE) --compile-executable-path="$(RUNTIME)" $(ORDERED) --outfile "$(OUT)"

dist: ## Build the release of every target, its packages and its lists into dist/release
	$(BUN) packaging/dist.ts

dist-check: ## Build the release twice and try it: other hosts' libraries and processors, installs, upgrades (root)
	bash packaging/check/all.sh

schemas: build ## Write the schemas that are printed, into schemas/
	for name in $$($(BIN) schema --list | cut -d' ' -f1); do $(BIN) schema $$name >schemas/$$name.json; done

man: build ## Write the manual page, dist/neurarch-gate.1
	$(BIN) man > dist/neurarch-gate.1

check: ## Format, lint and type-check
	node_modules/.bin/biome check .
	node_modules/.bin/tsc --noEmit

format: ## Rewrite the sources in the project's format
	node_modules/.bin/biome check --write .

test: ## Install what is missing, then run every test
	sh .ci/test

slurm-newer: build ## Run the tests of a real Slurm under Debian trixie's 24.11 in a chroot (root, 350 MB once)
	bash tests/slurm/newer.sh

bridge-real: build ## Run the bridge against a real SkyPilot over a real Slurm, TIMES times (root)
	sh tests/bridge-real/repeat.sh $(or $(TIMES),1)

bench: build ## Measure start-up against named peers, into docs/performance.md
	sh tests/bench/run.sh
	$(BUN) tests/slurm/latency.ts --into docs/slurm.md

bench-smoke: build ## Check that the bench runs: a few rounds, into dist/bench-smoke.md
	BENCH_RUNS=3 BENCH_OUT=dist/bench-smoke.md sh tests/bench/run.sh >/dev/null
	$(BUN) tests/slurm/latency.ts 2 >/dev/null

FUZZ_COUNT ?= 1000000
FUZZ_SEED ?= 7
fuzz: ## A million random inputs for every reader (hours; FUZZ_COUNT, FUZZ_SEED); the tests try 20,000 each
	nice -n 19 $(BUN) tests/hardening/fuzz/run.ts --count $(FUZZ_COUNT) --seed $(FUZZ_SEED)

LOAD_SECONDS ?= 60
LOAD_HOURS ?= 1
load: build ## 64 submits at once for a minute, an hour's traffic of serve and bridge, into docs/load.md (LOAD_SECONDS, LOAD_HOURS)
	$(BUN) tests/hardening/load.ts --seconds $(LOAD_SECONDS) --hours $(LOAD_HOURS) --into docs/load.md

oracle: ## Measure published training steps again, on fake tensors; not part of the tests (1 GB of packages)
	sh tests/oracle/run.sh

accuracy: ## Compute how near the sizes are, into docs/accuracy.md
	$(BUN) tests/sizing/accuracy-page.ts

clean: ## Remove what was built
	rm -rf dist
