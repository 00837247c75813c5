# Everything a developer does. Each target makes the environment (.venv) first, so each works in a fresh clone.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LIBRARIES := .libraries
PROJECTS := core $(addprefix plugins/,kernels fusion hello_c inspect mpi) backends_cpu backends_opencl backends_cuda
MANIFESTS := $(PROJECTS:%=%/pyproject.toml)
JOBS ?= 2
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
FUZZ_SECONDS ?= 3600
CUTS_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help env test libraries check types demo bench fuzz cuts wheels snapshot clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(STAMP)  ## make .venv with all packages (editable) and the tools

$(STAMP): requirements/dev.txt $(MANIFESTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "polyax needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation $(PROJECTS:%=-e %)
	@touch $@

test: $(STAMP)  ## pass the tests (PYTEST_ARGS='-k vmap -x' chooses)
	$(BIN)/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

libraries: $(STAMP) $(LIBRARIES)/.installed  ## run JAX's libraries on polyax, and compare with what JAX gave
	POLYAX_LIBRARIES_PYTHON=$(LIBRARIES)/bin/python $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup tests/libraries $(PYTEST_ARGS)

$(LIBRARIES)/.installed: requirements/libraries.txt $(MANIFESTS)
	test -x $(LIBRARIES)/bin/python || $(PYTHON) -m venv $(LIBRARIES)
	$(LIBRARIES)/bin/python -m pip install -q --disable-pip-version-check hatchling editables
	$(LIBRARIES)/bin/python -m pip install -q --disable-pip-version-check --no-deps -r requirements/libraries.txt
	$(LIBRARIES)/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation -e core -e plugins/kernels -e plugins/fusion -e backends_cpu
	@touch $@

check: $(STAMP)  ## lint, format, import layers, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright --project pyproject.toml --pythonpath $(BIN)/python

demo: $(STAMP)  ## train on handwritten digits, without and with jit (POLYAX_PLATFORMS chooses the device)
	$(BIN)/python examples/demo.py $(DEMO_ARGS)

bench: $(STAMP)  ## time import, trace, compile, dispatch and run
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

fuzz: $(STAMP)  ## look for random programs that fail (FUZZ_SECONDS says how long, FUZZ_SEED where to begin)
	$(BIN)/python tests/fuzz/search.py --seconds $(FUZZ_SECONDS) $(FUZZ_SEED:%=--seed %)

cuts: $(STAMP)  ## partition random programs for meshes of 1 to 8 devices (CUTS_ARGS='--programs 3000 --seed 7')
	$(BIN)/python tests/core/partition/random_cuts.py $(CUTS_ARGS)

wheels: $(STAMP)  ## build every distribution into dist/
	rm -rf dist
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist $(PROJECTS:%=./%)

snapshot: $(STAMP)  ## accept the present public names, and count the lines of the reading order
	$(BIN)/python tests/architecture/test_public_names.py
	PYTHONPATH=tests $(BIN)/python tests/architecture/test_docs.py

clean:  ## remove what was built, the environment too
	rm -rf $(VENV) $(LIBRARIES) build dist .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
