# Every target sets up .venv by itself, from constraints.txt; it is made again only when that or pyproject.toml changes.

VENV := .venv
BIN := $(VENV)/bin
# The first interpreter that runs and is new enough.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
WORKERS ?= 2
PYTEST_ARGS ?=

.PHONY: help demo test check bench docs fmt clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

demo: $(VENV)/.installed ## run the main job on an example, in a home of its own that is removed afterwards
	@scripts/clean-home.sh env PATH="$(CURDIR)/$(BIN):$$PATH" bash scripts/demo.sh

test: $(VENV)/.installed ## run the whole suite
	@scripts/clean-home.sh $(CURDIR)/$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

check: $(VENV)/.installed ## lint, format, types, layers, generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict fleetctl
	$(BIN)/lint-imports
	$(BIN)/python scripts/generate_docs.py --check

docs: $(VENV)/.installed ## write again what is generated: reference pages, plans/, the README's transcript
	$(BIN)/python scripts/generate_docs.py
	$(BIN)/python scripts/plans.py
	$(BIN)/python scripts/transcript.py

bench: $(VENV)/.installed-bench ## measure against the peers, write benchmarks/RESULTS.md
	@scripts/clean-home.sh $(CURDIR)/$(BIN)/python -m benchmarks

fmt: $(VENV)/.installed ## put the code in the form that `check` wants
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove what the targets made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Without build isolation the pinned setuptools builds, and nothing unpinned is fetched.
$(VENV)/.installed: constraints.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "fleetctl needs Python 3.11 or newer; name one with make PYTHON=..." >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) || \
		{ echo "$(PYTHON) cannot make a virtual environment; install its venv package (python3-venv)" >&2; exit 1; }
	@echo "setting up $(VENV)" >&2
	@$(PIP) install -c constraints.txt setuptools
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev,nvml,postgres]'
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[bench]'
	@touch $@
