# Every target makes its own environment in .venv when there is none; `make demo` and `make test` are all a new machine needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEVELOPER := $(VENV)/.developer

.PHONY: demo test lint bench bench-peers clean

demo: $(READY)
	$(BIN)/stockade demo

test: $(DEVELOPER)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2

lint: $(DEVELOPER)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

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
