# The project's commands, the same ones that CI runs. `make` alone lists them.
#
#   make test EXTRAS=all          with the optional parts too (any extras of pyproject.toml, by commas)
#   make test ARGS="-k offset"    further arguments for pytest (for sphinx-build in `make docs`)
#   make test WORKERS=0           in one process
#   make demo PYTHON=python3.12   with this Python instead of the newest one found (when .venv is first made)

VENV ?= .venv
PYTHON ?=
EXTRAS ?=
ARGS ?=
WORKERS ?= 2
LOWEST ?= python3.11

comma := ,
python := $(VENV)/bin/python
test-env := $(VENV)/.installed-test$(addprefix $(comma),$(EXTRAS))

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench soak docs wheel lowest clean
.DELETE_ON_ERROR:
.SECONDARY:

help:  ## list these commands
	@echo "princomp: make <command>. Each makes $(VENV) when absent and installs what it needs."
	@sed -n 's/^\([a-z]*\):.*##  *\(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

demo: $(VENV)/.installed-cli  ## the main job on bundled data: a fit, its tables and an HTML report, in out/demo
	@echo "Running princomp demo"
	@$(VENV)/bin/princomp demo --force

test: $(test-env)  ## all tests whose components are there, doctests and docs examples included
	@echo "Running the tests in $(WORKERS) processes (skipped ones are listed with the reason)"
	@$(python) -m pytest -n $(WORKERS) $(ARGS)

lint: $(VENV)/.installed-lint  ## ruff (rules and format), mypy, codespell
	@echo "Checking rules, format, types and spelling"
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/codespell

bench: $(VENV)/.installed-bench  ## each benchmark against its peers; prints tables
	@echo "Running benchmarks/*.py one after the other"
	@set -e; for file in benchmarks/[!_]*.py; do echo "$$file"; $(python) "$$file" $(ARGS); done

soak: $(test-env)  ## the slow tests, and scikit-learn's own tests on our classes
	@echo "Running the slow tests in one process (up to an hour)"
	@$(python) -m pytest -m soak $(ARGS)

docs: $(VENV)/.installed-docs  ## the documentation, as web pages
	@echo "Building the documentation (a warning is an error)"
	@$(python) -m sphinx -q -W --keep-going -b html $(ARGS) docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

wheel: $(VENV)/.made  ## the wheel, and the demo from it in an environment of its own
	@echo "Building the wheel, and running the demo from it"
	@rm -rf build/wheel && mkdir -p build/wheel/folder
	@$(python) -m pip wheel -qq --disable-pip-version-check --no-deps -w build/wheel .
	@$(python) -m venv build/wheel/env
	@build/wheel/env/bin/python -m pip install -qq --disable-pip-version-check "$$(echo build/wheel/*.whl)[cli]"
	@cd build/wheel/folder && ../env/bin/princomp demo && test -s out/demo/report.html

lowest: $(VENV)/.made  ## what all methods promise, with the oldest versions that pyproject.toml allows
	@echo "Testing with the oldest versions, on $(LOWEST)"
	@test -x build/lowest/bin/python || $(LOWEST) -m venv build/lowest
	@build/lowest/bin/python -m pip install -qq --disable-pip-version-check \
	    $$($(python) tools/lowest.py cli dask) pytest pytest-xdist "pandas==2.2.3" -e .
	@build/lowest/bin/python -m pytest -n $(WORKERS) -p no:cacheprovider tests/test_methods.py $(ARGS)

clean:  ## remove the environment, caches and everything the commands wrote
	@echo "Removing $(VENV), caches, out/ and docs/_build/"
	@rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis dist out docs/_build
	@find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The environment. An existing one with a working pip is kept, whoever made it.
$(VENV)/.made:
	@if $(python) -m pip --version >/dev/null 2>&1; then \
	    echo "Using the environment in $(VENV)"; \
	else \
	    found="$(PYTHON)"; [ -n "$$found" ] || found=$$(sh tools/find-python.sh) || exit 1; \
	    echo "Making $(VENV) with $$found"; \
	    "$$found" -m venv --clear $(VENV) || exit 1; \
	fi
	@touch $@

# One stamp per set of extras: .installed-test,all stands for princomp[test,all]. Renewed when pyproject.toml changes.
$(VENV)/.installed-%: pyproject.toml $(VENV)/.made
	@echo "Installing princomp[$*] into $(VENV) (the first time takes a minute or two)"
	@$(python) -m pip install -qq --disable-pip-version-check -e ".[$*]"
	@touch $@
