# Every target sets up its own environment first; run `make` to list them.

# The interpreter to build the environment with; empty: the first of the candidates that is new enough.
PYTHON ?=
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3 python3.13 python3.12 python3.11)

VENV := .venv
BIN := $(VENV)/bin
# Named for the content of pyproject.toml: a changed dependency sets up again, a touched file does not.
STAMP := $(VENV)/installed-$(shell cksum < pyproject.toml | cut -d ' ' -f 1)

DEMO_DATABASE ?= sqlite:///$(VENV)/demo.db
PYTEST ?=
QUICK ?=
MUTANTS ?=
REFERENCE ?=
RESULTS ?=

CHECKED := events projections engine tests benchmarks examples

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test lint typecheck format unit soak mutants wheel ledger tools-page bench bench-compare clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)$$/  make \1 - \2/p' Makefile

setup: $(STAMP) ## set up the private environment in .venv

$(STAMP): pyproject.toml
	@python=; for candidate in $(CANDIDATES); do \
	  if "$$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; \
	  then python=$$candidate; break; fi; done; \
	test -n "$$python" || { \
	  echo "make: no Python 3.11, 3.12 or 3.13 among: $(CANDIDATES). Install one, or say which: make PYTHON=/path/to/python3.12" >&2; exit 2; }; \
	rm -rf $(VENV); \
	"$$python" -m venv $(VENV) || { \
	  echo "make: $$python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "Setting up $(VENV): about a minute, once."
	@$(BIN)/python -m pip install -qq --no-input --disable-pip-version-check --editable '.[test,dev]'
	@touch $@

demo: $(STAMP) ## run a recorded turn of several tools on SQLite, twice: the stream, the table, the proof
	@rm -f $(VENV)/demo.db $(VENV)/demo.db-wal $(VENV)/demo.db-shm
	@set -e; export CALLJOURNAL_DATABASE_URL='$(DEMO_DATABASE)'; \
	show() { printf '\n$$ calljournal %s\n' "$$*"; $(BIN)/calljournal --no-json "$$@"; }; \
	show run examples/turn.json --tools examples/tools; \
	show run examples/turn.json --tools examples/tools; \
	show attempts; \
	show verify

test: lint typecheck unit ## everything but the long matrices: lint, types, shape, tests

lint: $(STAMP) ## ruff: rules and format
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)

typecheck: $(STAMP) ## mypy, strict
	$(BIN)/mypy

format: $(STAMP) ## put the code into its format, mend what ruff can mend
	$(BIN)/ruff check --fix-only $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

# A test's time limit is a signal, which a loop in C may not let through: after this many seconds without a test's end,
# every thread's stack is printed and the run is over.
HUNG = -o faulthandler_exit_on_timeout=true -o faulthandler_timeout

# Tests at once, one more than CI has cores: here a test waits for a disk or a process a quarter of its time.
WORKERS ?= 3
SPREAD = -n $(WORKERS) --dist worksteal

unit: $(STAMP)
	$(BIN)/python -m pytest -m 'not soak and not alone' $(SPREAD) $(HUNG)=300 $(PYTEST)

soak: $(STAMP) ## the long matrices: crashes, races, property tests at length, packaging
	$(BIN)/python -m pytest -m 'soak and not alone' $(SPREAD) $(HUNG)=1800 $(PYTEST)
	$(BIN)/python -m pytest -m alone $(HUNG)=300 $(PYTEST)

mutants: $(STAMP) ## break each promise on purpose, which its tests must notice; MUTANTS="no_fence …": only these
	$(BIN)/python -m tests.mutants $(MUTANTS)

wheel: $(STAMP) ## build the wheel and the source archive into dist/
	@rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

ledger: $(STAMP) ## bring tests/cases.csv up to date with the names of the tests
	$(BIN)/python -m tests.cases_ledger

tools-page: $(STAMP) ## bring the tables of docs/tools.md up to date with the tools
	$(BIN)/python -m tests.tools_page

bench: $(STAMP) ## measure beside bare loops, ten minutes at most; QUICK=1: in two; REFERENCE=file.py: beside that
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick) $(if $(REFERENCE),--reference $(REFERENCE)) --output benchmarks/results/$(shell date +%Y%m%d-%H%M%S).json

bench-compare: $(STAMP) ## compare two result files: RESULTS="old.json new.json"
	$(BIN)/python -m benchmarks.compare $(RESULTS)

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +
