# Every target works inside .venv at the repository's root, which 'make setup' makes when needed.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
WEIGHTS := src/semanticspec/proxies/weights
TRAIN := $(BIN)/python -m semanticspec.proxies.train
.PHONY: help setup run test lint tables proxies probes bench clean

help:  ## Show what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | \
		while IFS='|' read -r target text; do printf '  make %-9s %s\n' "$$target" "$$text"; done
	@echo; echo "  python run.py --help    everything that a run can be told"

setup: $(READY)  ## Make .venv with everything in it (again only when the dependencies change)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; say which: make setup PYTHON=python3.11" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	@touch $@

run: setup  ## Run the main job: five methods, four benchmarks, one table (some minutes)
	$(BIN)/python run.py experiment=quickstart results_dir=results/quickstart
	$(BIN)/python -m semanticspec.reporting results/quickstart --out results/quickstart

test: setup  ## Run the tests
	$(BIN)/python -m pytest

lint: setup  ## Check style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

tables: setup  ## Make the table and pictures of the embedded pair from its committed results
	$(BIN)/python -m semanticspec.reporting results/reference --out results/reference

proxies: setup  ## Train the embedded pair again (about two hours)
	$(TRAIN) target --out $(WEIGHTS)/target
	$(TRAIN) target --out $(WEIGHTS)/target --start $(WEIGHTS)/target --seed 2 --tokens 1200000
	$(TRAIN) draft --out $(WEIGHTS)/draft
	$(TRAIN) draft --out $(WEIGHTS)/draft --start $(WEIGHTS)/draft --seed 2 --tokens 5000000
	$(BIN)/python -m semanticspec.proxies.card

probes: setup  ## Collect, label and train the probes of the embedded pair
	$(BIN)/python -m semanticspec.probing all model=proxy collect.n_problems=480 \
		collect.n_samples=12 collect.context_rate=0.5 \
		'collect.target_layers=[5,8,11]' 'collect.draft_layers=[0,1]'

bench: setup  ## Time the engine beside transformers' own generation
	$(BIN)/python -m semanticspec.bench

clean:  ## Remove what can be made again, .venv included; results stay
	rm -rf .venv build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
