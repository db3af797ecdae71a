# make demo | make test | make test-all | make docs | make lint | make fuzz | make clean
# PYTHON=python3.12 picks the interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Small matrices: several BLAS threads are slower than one.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test test-all docs lint fuzz browser clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python demo.py
	@echo
	$(BIN)/temperance calibrate --report demo.html

# One file stays with one worker, so that its tests share what they compute.
test: lint browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Slow statistical tests as well.
test-all: lint browser
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "slow or not slow"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in docs/_build/html: open index.html. Nothing is loaded from outside.
docs: $(VENV)/.site
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Hostile problems, as many as there is time for: make fuzz CASES=20000 KIND=calibrations START=1000
CASES ?= 1000
KIND ?= calibrations
START ?= 0
fuzz: $(VENV)/.installed
	$(BIN)/python -m tests.fuzz --kind $(KIND) --cases $(CASES) --start $(START)

# The report is tested in Chromium; root on Debian, as in CI, has it installed, others are told.
browser:
	@for name in chromium chromium-browser google-chrome; do \
		command -v $$name >/dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium, to test the report in"; \
		apt-get install -y -qq chromium >/dev/null 2>&1 \
			|| { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1 || true; \
	fi; \
	command -v chromium >/dev/null || echo "No Chromium here: tests of the report in a browser will be skipped"

$(VENV)/bin/python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'temperance needs Python 3.11 or newer, $(PYTHON) is ' + sys.version.split()[0])"
	@$(PYTHON) -m venv $(VENV)

# What the demo needs, and no more; the tests add the rest to the same environment.
$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Setting up $(VENV) for the demo"
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.installed: pyproject.toml src/temperance_studies/pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Setting up $(VENV); the first time takes about a minute"
	$(BIN)/pip install -q --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]' -e src/temperance_studies
	touch $@

# MathJax, which only the finished site needs, comes with many other packages.
$(VENV)/.site: $(VENV)/.installed
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[site]'
	touch $@

clean:
	rm -rf docs/_build docs/api docs/examples
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis demo.png demo.html
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
