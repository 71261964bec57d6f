# Every target makes its own environment in .venv when there is none; `make demo` and `make test` are all a new machine needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEVELOPER := $(VENV)/.developer
PYTEST := HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2
COVERAGE := --cov=stockade --cov-append --cov-report=

.PHONY: demo test test-all fuzz lint mutants bench bench-peers clean

demo: $(READY)
	$(BIN)/stockade demo

test: $(DEVELOPER)
	$(PYTEST) -m "not slow and not study" $(OPTIONS)

# The same, then the suites that kill processes, draw for minutes or ask neural victims; coverage over both.
test-all: $(DEVELOPER)
	rm -f .coverage .coverage.*
	$(MAKE) test OPTIONS="$(COVERAGE)"
	$(PYTEST) -m "slow and not study" $(COVERAGE)
	$(BIN)/coverage report --skip-covered --fail-under=90

# Ten minutes of damaged files for every loader and every file of a job's folder, on two cores; none may end in a traceback.
fuzz: $(DEVELOPER)
	STOCKADE_FUZZ_SECONDS=1200 $(PYTEST) tests/security/test_fuzz.py

lint: $(DEVELOPER)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Changes the code in small ways and counts which changes no test notices (docs/benchmarks.md has the last score).
mutants: $(DEVELOPER)
	$(BIN)/python tools/mutants.py

bench: $(READY)
	$(BIN)/python benchmarks/engine.py

bench-peers: $(READY)
	$(BIN)/python benchmarks/peers.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $(READY)

$(DEVELOPER): $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(DEVELOPER)

clean:
	rm -rf $(VENV) .venv-textattack build dist
