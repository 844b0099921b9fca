# What a contributor runs. Needs Rust 1.95 and Python 3.10 or newer; the rest goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CARGO ?= cargo

# What the extension is built from.
SOURCES := $(shell git ls-files -co --exclude-standard 'crates/*' Cargo.toml Cargo.lock pyproject.toml)

# A processor that most have: tests run code for it besides this one's.
LESSER := $(shell grep -qsw avx2 /proc/cpuinfo && echo avx2 || echo portable)

.PHONY: demo extension ptxas test-ptx test test-rust test-python fmt lint tidy clean

## Build Naiad and run a script of Triton kernels on this machine's CPU.
demo: extension
	$(BIN)/python -m naiad run examples/demo.py

$(VENV)/.tools:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "maturin>=1.9,<2" numpy pytest pytest-xdist
	touch $@

# One profile for everything, so that tests, CI and the extension build once.
$(VENV)/.extension: $(VENV)/.tools $(SOURCES)
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --quiet --profile dev
	touch $@

extension: $(VENV)/.extension

# NVIDIA's assembler, which tests hold PTX to; it needs no GPU. Of one version, since how many registers
# kernels take is compared.
$(VENV)/.ptxas: $(VENV)/.tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "nvidia-cuda-nvcc==13.5.37"
	touch $@

ptxas: $(VENV)/.ptxas

## Golden PTX: the texts, and what ptxas says of them.
test-ptx: ptxas
	$(CARGO) run --quiet -p xtask -- ptx

test: test-rust test-python

test-rust:
	$(CARGO) test --workspace

# All; then the language on a lesser processor and on a GPU.
test-python: extension
	$(BIN)/python -m pytest -q
	NAIAD_CPU=$(LESSER) $(BIN)/python -m pytest -q tests/ops tests/features
	NAIAD_EXECUTOR=lockstep $(BIN)/python -m pytest -q tests/ops tests/features

fmt:
	$(CARGO) fmt --all

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

tidy:
	$(CARGO) run --quiet -p xtask -- tidy

clean:
	rm -rf $(VENV)
	$(CARGO) clean
