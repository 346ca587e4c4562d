# Two commands do all the set-up: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHECKED := src tests benchmarks campaigns scripts

.PHONY: demo demo-vllm demo-cards test faults check lock schemas docs clean

demo: $(VENV)/.base
	scripts/demo.sh campaigns/quickstart/campaign.yaml

demo-vllm: $(VENV)/.base
	$(BIN)/labctl prereg validate campaigns/vllm-cpu-ngram
	@echo "installing vLLM into .labctl/serving: about 3.5 GB and two minutes the first time; then four server starts, about three minutes"
	scripts/serving-environment.sh .labctl/serving
	scripts/demo.sh campaigns/vllm-cpu-ngram/campaign.yaml

# A component and a probe on four sets of CPUs; needs torch, which the environment of tests has.
demo-cards: $(VENV)/.dev
	scripts/demo.sh campaigns/context-kv/cpu.yaml
	scripts/demo.sh campaigns/probe/cpu.yaml

# Two workers, as most tests wait for processes; by file, as a file's tests share what they run; the slow folders first.
test: $(VENV)/.dev
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/labctl prereg schema --check
	$(BIN)/labctl prereg validate campaigns
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

# Every fault at full counts, about an hour on two cores; writes docs/fault-results.md.
faults: $(VENV)/.dev
	nice -n 10 $(BIN)/python scripts/faults.py

$(VENV)/.base: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable .
	touch $@

$(VENV)/.dev: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements.lock --editable '.[dev,torch]'
	touch $@ $(VENV)/.base

# The lock holds what CI installs; make it anew after a change of dependencies.
lock:
	$(BIN)/pip freeze --exclude-editable > requirements.lock

schemas: $(VENV)/.base
	$(BIN)/labctl prereg schema --write

# The pages that are made from data.
docs: $(VENV)/.dev
	$(BIN)/python -m tests.faults.table

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
