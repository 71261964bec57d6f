# Every target makes its own environment in .venv when there is none; `make demo` and `make test` are all a new machine needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := $(VENV)-textattack

.PHONY: demo test lint types bench bench-peers clean

demo: $(READY)
	$(BIN)/stockade demo

test: $(READY)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2

lint: $(READY)
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
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) $(PEERS) build dist
