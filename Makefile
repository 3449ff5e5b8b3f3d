# Transformer Math Lab. `make help` lists the commands.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python
READY := $(VENV)/ready
READY_LAB := $(VENV)/ready-lab
PORT ?= 8000

.DEFAULT_GOAL := help
.PHONY: help book serve changed lab check test lint format strip matrix mutate record tamper weigh workbook math vendor clean

help: ## list the commands
	@echo "make COMMAND, where COMMAND is one of"
	@sed -n 's/^\([a-z][a-z]*\):.*## /  \1: /p' Makefile

book: $(READY) ## execute the chapters and build the site; the last line says what to open
	@$(RUN) book/build.py

serve: book ## build the site and serve it at http://127.0.0.1:8000 (PORT=... for another port)
	@$(RUN) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

changed: $(READY) ## list the pages your work touches, with addresses (SINCE=COMMIT)
	@$(RUN) book/changed.py $(SINCE)

lab: $(READY_LAB) ## open the chapters and workbooks in JupyterLab
	@$(RUN) -m jupyter lab

check: $(READY) ## run the programs of labs/ only, a few seconds
	@$(RUN) labs/run_all.py

test: $(READY) ## run everything that must hold, with a time for each stage
	@$(RUN) tests/run_all.py

lint: $(READY) ## check format, style and types
	@$(RUN) tests/run_all.py format style types

format: $(READY) ## put the code and the lesson code into the house format
	@$(RUN) -m ruff format
	@$(RUN) -m ruff check --fix
	@$(BIN)/oxfmt book/_static/*.js book/_ext/*.mjs tests/browser/*.js
	@$(RUN) -m ruff format --config tests/notebooks/lessons.toml book labs

strip: $(READY) ## take outputs and other traces of a run out of the notebooks
	@$(RUN) tests/notebooks/strip.py

matrix: $(READY) ## compute the fault matrix and the tolerances again
	@$(RUN) -m labcore.matrix

record: $(READY) ## record a run: documents, verdicts, environment, digests of outputs, floors
	@$(RUN) book/record.py

tamper: book ## change a constant, corrupt copies of the project, see each one noticed
	@$(RUN) tests/whole_book.py
	@$(RUN) tests/tamper.py

mutate: $(READY) ## change each operation at random and see the checks notice
	@$(RUN) tests/mutate.py

weigh: $(READY) ## weigh the pages beside those of a stock Jupyter Book (needs npm and Chromium)
	@$(RUN) book/weigh.py

workbook: $(READY) ## write the workbooks of labs/ again from the source of labcore
	@$(RUN) tests/notebooks/workbook.py

math: $(READY) ## render the formulas again (needs Node; only after a formula changed)
	@npm ci --prefix book/_ext --no-audit --no-fund --silent
	@mkdir -p _build && rm -f _build/formulas.json
	-@MATH_COLLECT=_build/formulas.json $(RUN) book/build.py
	@node book/_ext/mathrender.mjs _build/formulas.json

vendor: ## fetch the third-party browser files again (needs Node)
	@npm ci --prefix book/_ext --no-audit --no-fund --silent
	@node book/_ext/mathrender.mjs

clean: ## remove what was built, keep the environment
	rm -rf _build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): requirements.txt shared/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "This course needs Python 3.11 or later. $(PYTHON) is older, or not there."; \
	  echo "Name another one: make PYTHON=/path/to/python3.12 ..."; exit 1; }
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Python cannot make an environment. On Debian and Ubuntu:"; \
	  echo "  apt-get install python3-venv"; exit 1; }
	$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(READY_LAB): $(READY) requirements-lab.txt
	$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-lab.txt
	@touch $@
