# Each target is a command that could be typed; set VENV and RETABLE_CACHE to share them.
PAPER ?=
PYTHON ?= python3
VENV ?= .venv
LOCK := $(shell cat requirements.lock requirements-test.lock | sha256sum | cut -c1-12)
READY := $(VENV)/.complete-$(LOCK)
RUN := . $(VENV)/bin/activate &&
JOBS := $(if $(PAPER),$(PAPER)_evaluate,all)

.PHONY: tables test lint verify publish record report bench sync remote gc kernel-table device-check clean

tables: $(READY)
	$(RUN) snakemake $(JOBS)
	$(RUN) python -m steps.shared.ledger --print --claims results/mini/*/evaluate/claims.json
	$(RUN) python -m steps.shared.publish verify $(if $(PAPER),--paper $(PAPER))

test: $(READY) lint
	$(RUN) python -m pytest

lint: $(READY)
	$(RUN) ruff check . && ruff format --check . && snakefmt --check Snakefile workflow
	$(RUN) snakemake --lint

verify: $(READY)
	$(RUN) python -m steps.shared.publish verify $(if $(PAPER),--paper $(PAPER))

publish: $(READY)
	$(RUN) python -m steps.shared.publish publish $(if $(PAPER),--paper $(PAPER))
	$(RUN) python -m steps.shared.pages

record: $(READY)
	$(RUN) snakemake all && dvc commit -f

report: $(READY)
	$(RUN) snakemake all --report report.html --report-stylesheet workflow/report/style.css

bench: $(READY)
	$(RUN) for race in benchmarks/*.py; do python $$race || exit 1; done && python -m benchmarks.sides.figures

sync: $(READY)
	$(RUN) python -m steps.shared.tracking sync

remote: $(READY)
	$(RUN) dvc remote add --local --force --default store $(abspath $(DIR))

gc: $(READY)
	$(RUN) rm -rf state && dvc gc --workspace --force

kernel-table: $(READY)
	$(RUN) for file in kernels/*/variants.py; do python -m kernels.compile_table $$(basename $$(dirname $$file)) || exit 1; done

device-check: $(READY)
	$(RUN) python -m kernels.device_check

clean:
	rm -rf results state logs wandb assets report.html .snakemake

$(READY):
	@for tool in $(PYTHON) git gcc; do command -v $$tool > /dev/null || { echo "missing: $$tool"; exit 1; }; done
	@$(PYTHON) -c "import sys; sys.exit(0 if sys.version_info[:2] == (3, 11) else 'missing: Python 3.11, where the lock resolves (make PYTHON=python3.11)')"
	@$(PYTHON) -c "import ensurepip, venv" || { echo "missing: Python's venv module (python3.11-venv)"; exit 1; }
	@echo "making the environment in $(VENV): about 7 GB, some minutes, once"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet -r requirements.lock -r requirements-test.lock
	touch $(READY)
