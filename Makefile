# Everything runs in a local environment, .venv, made from Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# One thread per process: the tests run in as many processes as there are cores.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false

.PHONY: atlas test test-slow bench docs clean

atlas: $(VENV)/.plot
	$(BIN)/deeplimits atlas --out site
	@echo "open site/index.html in a browser"

test: $(VENV)/.test
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/pyright
	$(THREADS) $(BIN)/python -m pytest --quiet -n auto --dist loadgroup

test-slow: $(VENV)/.test
	$(THREADS) $(BIN)/python -m pytest --quiet -n auto --dist loadgroup -m slow

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

$(VENV)/.python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'deeplimits needs Python 3.11 or newer; set PYTHON=...')"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip
	touch $@

$(VENV)/.plot: $(VENV)/.python pyproject.toml
	$(PIP) install -e '.[plot]'
	touch $@

$(VENV)/.test: $(VENV)/.python pyproject.toml
	$(PIP) install -e '.[test]'
	touch $@

$(VENV)/.docs: $(VENV)/.python pyproject.toml
	$(PIP) install -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) .peers site docs/_build dist .pytest_cache .ruff_cache .hypothesis
