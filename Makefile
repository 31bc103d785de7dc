# Two commands do everything: make demo, make test. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NAME ?=
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# rapidocr asks for opencv-python, which needs libraries of a desktop; the headless build is the same module without.
# Both own the same files, so the one that stays is put in again after the other went.
HEADLESS := $(PIP) uninstall --yes opencv-python 2>/dev/null && $(PIP) install --force-reinstall --no-deps -c constraints.txt opencv-python-headless

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev peers pin demo serve test lint format bench chaos fuzz sbom audit-dependencies clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  make %-18s %s\n", $$1, $$2}'

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[learn]'
	@$(HEADLESS)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(STAMP)
	$(PIP) install -c constraints.txt -e '.[dev,learn,bench,dp]'
	@$(HEADLESS)
	@touch $@

setup: $(STAMP) ## create .venv and install what running needs

setup-dev: $(VENV)/.installed-dev peers ## the same, with what tests need

peers: ## dcmtk, Orthanc, PostgreSQL, Chromium by apt when root; elsewhere tests that need a missing one skip visibly
	@sh tools/install_peers.sh

pin: setup-dev ## write constraints.txt anew from pyproject.toml
	$(BIN)/python tools/pin.py

demo: setup ## gateway on loopback, real studies in, a table of what became of them
	@$(BIN)/deid-gateway demo

serve: setup ## run the gateway (DEID_HOME names its home)
	$(BIN)/deid-gateway serve

lint: setup-dev ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell gateway models policies tests bench tools helm README.md
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup-dev ## rewrite to our format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: lint ## everything: format, lint, types, contracts, all tests
	$(BIN)/pytest -n 2 --dist loadgroup

bench: setup-dev ## make bench NAME=x: print a table, write bench/results/x.json
	@test -n "$(NAME)" || { echo "which one? make bench NAME=x, x one of:"; ls bench/*.py | sed 's,bench/\(.*\)\.py,  \1,'; exit 2; }
	$(BIN)/python -m bench.$(NAME)

chaos: setup-dev ## 200 kills and other faults on each store, and what must hold after them (goes on where it stopped)
	$(BIN)/python -m bench.chaos

fuzz: setup-dev ## ten minutes of fuzzing for each reader of foreign bytes
	$(PIP) install -c constraints.txt -e '.[fuzz]'
	@$(HEADLESS)
	$(BIN)/python -m bench.fuzz

sbom: setup-dev ## bill of materials of what runs: build/sbom.cdx.json
	@$(BIN)/python tools/sbom.py

audit-dependencies: setup-dev ## known vulnerabilities in what is pinned (needs the network; says so where there is none)
	@$(PIP) install -c constraints.txt -e '.[audit]'
	@$(HEADLESS)
	@$(BIN)/python tools/audit_dependencies.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
