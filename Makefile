# make demo | make test | make lint | make clean      (PYTHON=python3.12 picks the interpreter)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Small matrices: several BLAS threads are slower than one.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test lint clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(BIN)/python demo.py

test: lint
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'temperance needs Python 3.11 or newer, $(PYTHON) is ' + sys.version.split()[0])"
	@echo "Setting up $(VENV); the first time takes about a minute"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[demo,dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis demo.png
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
