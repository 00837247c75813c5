# Everything a developer does. Each target makes the environment (.venv) first, so each works in a fresh clone.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LIBRARIES := .libraries
DOCS := .docs
RELEASE := .release
LOCKED := .locked
TESTING := pytest pytest-xdist hypothesis mpmath
LOCKED_TESTS ?= tests/core/numpy tests/core/api tests/cpu tests/plugins tests/wasm tests/onnx
BUILD := hatchling editables uv-dynamic-versioning
ARRAY_API := .array-api
ARRAY_API_SOURCE ?= https://github.com/data-apis/array-api-tests
ARRAY_API_COMMIT ?= 019e060f003acfa2eec33761f0e948c937633443
ARRAY_API_ARGS ?= --max-examples 20
ARRAY_API_SUITE ?= $(ARRAY_API)/suite
PROJECTS := core $(addprefix plugins/,kernels fusion hello_c wasm inspect mpi conformance onnx) backends_cpu backends_opencl backends_cuda
DISTRIBUTIONS := polyax $(addprefix polyax-,kernels fusion hello-c wasm inspect mpi conformance onnx cpu opencl cuda)
EXTRAS := fft ducc pocl mpich parts
MANIFESTS := VERSION $(PROJECTS:%=%/pyproject.toml)
JOBS ?= 2
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
SWEEP_ARGS ?=
FUZZ_ARGS ?= --seconds 3600
CUTS_ARGS ?=
EXTRAS_ARGS ?=
SOAK_ARGS ?=
BROWSE_ARGS ?=
CARDS ?=

unexport PYTHONDONTWRITEBYTECODE  # with it, each of the many processes of the tests would compile the packages anew

.DEFAULT_GOAL := help
.PHONY: help env test libraries array-api check types demo bench sweep fuzz soak cuts docs browse gallery older cards cards-check wheels release-check extras sbom locks test-minimal test-newest snapshot clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(STAMP)  ## make .venv with all packages (editable) and the tools

$(STAMP): requirements/dev.txt $(MANIFESTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "polyax needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation $(PROJECTS:%=-e %)
	@touch $@

test: $(STAMP)  ## pass the tests (PYTEST_ARGS='-k vmap -x' chooses)
	$(BIN)/python -m pytest -n $(JOBS) $(PYTEST_ARGS)

older: $(STAMP)  ## test the cpu backend with code for processors without AVX-512, on one that has it
	POLYAX_CPU_TARGET=x86-64-v3 $(BIN)/python -m pytest -n $(JOBS) tests/cpu $(PYTEST_ARGS)

libraries: $(STAMP) $(LIBRARIES)/.installed  ## run JAX's libraries on polyax, and compare with what JAX gave
	POLYAX_LIBRARIES_PYTHON=$(LIBRARIES)/bin/python $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup tests/libraries $(PYTEST_ARGS)

$(LIBRARIES)/.installed: requirements/libraries.txt $(MANIFESTS)
	test -x $(LIBRARIES)/bin/python || $(PYTHON) -m venv $(LIBRARIES)
	$(LIBRARIES)/bin/python -m pip install -q --disable-pip-version-check $(BUILD)
	$(LIBRARIES)/bin/python -m pip install -q --disable-pip-version-check --no-deps -r requirements/libraries.txt
	$(LIBRARIES)/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation -e core -e plugins/kernels -e plugins/fusion -e backends_cpu
	@touch $@

array-api: $(STAMP) $(ARRAY_API)/.installed  ## run the suite of the array API standard (ARRAY_API_SUITE=folder: one that is there)
	cd $(ARRAY_API_SUITE) && ARRAY_API_TESTS_MODULE=polyax.numpy POLYAX_ENABLE_X64=1 POLYAX_PLATFORMS=cpu \
	  $(CURDIR)/$(ARRAY_API)/bin/python -m pytest -q -p no:cacheprovider --disable-deadline array_api_tests $(ARRAY_API_ARGS)

$(ARRAY_API)/suite/requirements.txt:
	git init -q $(ARRAY_API)/suite
	cd $(ARRAY_API)/suite && git fetch -q --depth 1 $(ARRAY_API_SOURCE) $(ARRAY_API_COMMIT) && git checkout -q FETCH_HEAD \
	  && git submodule -q update --init --depth 1 \
	  || { echo "array-api: the suite couldn't be fetched; ARRAY_API_SUITE=folder names one that is there"; exit 1; }

$(ARRAY_API)/.installed: $(ARRAY_API_SUITE)/requirements.txt $(MANIFESTS)
	test -x $(ARRAY_API)/bin/python || $(PYTHON) -m venv $(ARRAY_API)
	$(ARRAY_API)/bin/python -m pip install -q --disable-pip-version-check $(BUILD) -r $(ARRAY_API_SUITE)/requirements.txt
	$(ARRAY_API)/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation -e core -e plugins/kernels -e plugins/fusion -e backends_cpu
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

sweep: $(STAMP)  ## time every operation (SWEEP_ARGS='--peer jax=PYTHON --json F --plot F.svg -k conv')
	$(BIN)/python benchmarks/sweep.py $(SWEEP_ARGS)

fuzz: $(STAMP)  ## look for random programs that fail, on all cores; goes on where it ended (FUZZ_ARGS='--seconds 3600 --jobs 8')
	$(BIN)/python tests/fuzz/search.py $(FUZZ_ARGS)

soak: $(STAMP)  ## eight threads for an hour: the bits of each alone, memory flat (SOAK_ARGS='--seconds 600 --plot F.svg')
	$(BIN)/python tests/soak/run.py $(SOAK_ARGS)

cuts: $(STAMP)  ## partition random programs for meshes of 1 to 8 devices (CUTS_ARGS='--programs 3000 --seed 7')
	$(BIN)/python tests/core/partition/random_cuts.py $(CUTS_ARGS)

docs: $(DOCS)/.installed  ## build the site into build/site, without a network; open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict --quiet
	$(DOCS)/bin/python docs/_site/built.py

browse: docs  ## look at each page of the site in Chromium, wide and narrow, light and dark (BROWSE_ARGS='--pictures F')
	$(DOCS)/bin/python docs/_site/browse.py $(BROWSE_ARGS)

$(DOCS)/.installed: requirements/docs.txt $(MANIFESTS)
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install -q --disable-pip-version-check -r requirements/docs.txt
	$(DOCS)/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation -e core -e plugins/kernels
	@touch $@

gallery: $(STAMP)  ## draw the pictures of docs/gallery.md again
	$(BIN)/python docs/_site/gallery.py

cards: $(STAMP)  ## grade all platforms again for docs/cards.md (CARDS='onnx wasm' names some)
	$(BIN)/python docs/_site/cards.py $(CARDS)

cards-check: $(STAMP)  ## grade platforms anew, and compare with their cards (CARDS='onnx wasm' names some)
	$(BIN)/python docs/_site/cards.py --check $(CARDS)

wheels: $(STAMP)  ## build every distribution into dist/
	rm -rf dist
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist $(PROJECTS:%=./%)
	$(BIN)/python release/ship.py

release-check: $(STAMP) $(RELEASE)/.installed  ## build wheels and source archives into dist/; say whether they may be published
	$(RELEASE)/bin/python release/check.py $(BIN)/python

$(RELEASE)/.installed: requirements/release.txt
	test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install -q --disable-pip-version-check $(BUILD) -r requirements/release.txt
	@touch $@

extras: wheels $(RELEASE)/.installed  ## install the checkout with each extra into empty environments, by pip and by uv (EXTRAS_ARGS='cpu --by uv')
	PATH=$(CURDIR)/$(RELEASE)/bin:$$PATH $(RELEASE)/bin/python release/extras.py $(EXTRAS_ARGS)

sbom: wheels $(RELEASE)/.installed  ## list every part that users get, with its license, in dist/polyax.cdx.json
	$(RELEASE)/bin/uv venv --quiet --clear $(RELEASE)/parts
	$(RELEASE)/bin/uv pip install --quiet --python $(RELEASE)/parts --no-deps -r requirements/newest.txt dist/*.whl
	$(RELEASE)/bin/cyclonedx-py environment --output-reproducible --output-format JSON \
	  --output-file dist/polyax.cdx.json $(RELEASE)/parts/bin/python

locks: $(RELEASE)/.installed  ## write requirements/minimal.txt and newest.txt anew: the least and the newest that users may have
	$(LOCK) --resolution lowest-direct --output-file requirements/minimal.txt
	$(LOCK) --upgrade --output-file requirements/newest.txt

# CUDA's are left out: what its libraries need of each other is NVIDIA's, and there are three gigabytes of them.
LOCK = $(RELEASE)/bin/uv pip compile --quiet --no-annotate --custom-compile-command "make locks" --python-version 3.11 $(EXTRAS:%=--extra %) \
  $(addprefix --no-emit-package ,pytest $(DISTRIBUTIONS)) $(filter-out VERSION backends_cuda/%,$(MANIFESTS))

test-minimal: PYTEST_ARGS += -k 'not capsules and not weighted_elements and not any_number_of_threads'  # what NumPy does since 2.4

test-minimal:  ## run a part of the tests with the least dependencies that users may have
test-newest:  ## run them with the newest
test-minimal test-newest: test-%: requirements/%.txt $(MANIFESTS)
	test -x $(LOCKED)/$*/bin/python || $(PYTHON) -m venv $(LOCKED)/$*
	$(LOCKED)/$*/bin/python -m pip install -q --disable-pip-version-check -r $< $(BUILD) $(TESTING)
	$(LOCKED)/$*/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps $(PROJECTS:%=-e %)
	$(LOCKED)/$*/bin/python -m pytest -n $(JOBS) -m 'not slow' $(LOCKED_TESTS) $(PYTEST_ARGS)

snapshot: $(STAMP)  ## accept the present public names, count the lines of the reading order, write docs/semantics.md
	$(BIN)/python tests/architecture/test_public_names.py
	PYTHONPATH=tests:docs/_site $(BIN)/python tests/architecture/test_docs.py
	PYTHONPATH=docs/_site $(BIN)/python docs/_site/semantics.py

clean:  ## remove what was built, the environment too
	rm -rf $(VENV) $(LIBRARIES) $(ARRAY_API) $(DOCS) $(RELEASE) $(LOCKED) build dist .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
