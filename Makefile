# `make` alone lists what there is. Needs Python 3.11 to 3.13 and pip, nothing else.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 \
  || command -v python3)
VENV := .venv
PIP := -m pip install --quiet --disable-pip-version-check

# A stamp says "installed from these files": a second make is instant, and a change
# of pyproject.toml or constraints.txt installs again.
BASE := $(VENV)/.installed-base
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
COMPETITORS := $(patsubst benchmarks/requirements-%.txt,.venv-bench-%/.installed,\
  $(wildcard benchmarks/requirements-*.txt))
# Benchmarks beside which the competitors run, each in an environment of its own.
COMPARED := samplers labels_encoding

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo ui test quick lint size docs faults bench choosing competitors clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(BASE)  ## set up once, then run the demo pipeline
	$(VENV)/bin/curvote demo

ui: $(BASE)  ## show and compare the results in the browser
	$(VENV)/bin/curvote ui

# Tests start hundreds of commands; each would compile curvote anew.
test quick faults: export PYTHONDONTWRITEBYTECODE :=

test: $(DEV)  ## run the tests, a file at a time on each processor
	$(VENV)/bin/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

quick: $(DEV)  ## run the tests that start no server, no browser and no whole run
	$(VENV)/bin/python -m pytest -n auto -m 'not faults and not slow'

lint: $(DEV)  ## check style, types, the direction of imports, and names
	$(VENV)/bin/ruff check --no-cache .  # its cache misses imports of what is gone
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/python -m tests.names

size: $(DEV)  ## count lines, files, imports and functions of product and tests
	$(VENV)/bin/python -m benchmarks.size

docs: $(DOCS)  ## build the documentation, run its notebooks, check its links
	rm -rf build/docs  # a page that did not change would not be warned of again
	$(VENV)/bin/sphinx-build --jobs auto --fail-on-warning --keep-going \
	  --nitpicky docs build/docs
	$(VENV)/bin/python docs/making/links.py build/docs

faults: $(DEV)  ## kill runs and break files, many rounds
	$(VENV)/bin/python -m pytest -m faults -rP

bench: $(DEV)  ## measure (ONLY=overhead: one; ARGS=--full: its options), keep, compare
	@$(if $(filter-out $(COMPARED),$(ONLY)),:,$(MAKE) --no-print-directory -k competitors) \
	  || echo 'Going on without the competitor that could not be installed' >&2
	$(VENV)/bin/python -m benchmarks.run_all $(ONLY) -- $(ARGS)

choosing: $(BASE)  ## measure the figure and the tables of docs/choosing.md anew
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m benchmarks.choosing_figure

clean:  ## remove environments and caches, never data
	rm -rf $(VENV) .venv-bench* build dist docs/reference *.egg-info .hypothesis
	rm -rf .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find benchmarks curvote flows tasks tests -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call environment,FOLDER): make it if Python is 3.11 to 3.13, say so if it is not
define environment
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
	  echo 'curvote needs Python 3.11 to 3.13; "$(PYTHON)" is not. Name one: make PYTHON=/path/to/python3.11' >&2; \
	  exit 1; }
	"$(PYTHON)" -m venv $(1)
endef

$(BASE): pyproject.toml constraints.txt
	$(call environment,$(VENV))
	@echo 'Installing the tested environment: once, a few minutes'
	$(VENV)/bin/python $(PIP) -c constraints.txt -e '.[all]'
	@touch $@

$(DEV): $(BASE)
	$(VENV)/bin/python $(PIP) -c constraints.txt -e '.[all,test,lint,neural,images,onnx,dask,postgres,delta]'
	@touch $@

$(DOCS): $(DEV)
	$(VENV)/bin/python $(PIP) -c constraints.txt -e '.[all,docs]'
	@touch $@

competitors: $(COMPETITORS)

.venv-bench-%/.installed: benchmarks/requirements-%.txt
	$(call environment,$(@D))
	$(@D)/bin/python $(PIP) -r $<
	@touch $@
