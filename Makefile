# A self-contained workflow: every target makes .venv first (once). Works in paths with spaces.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOORS := .venv-doors
DOORS_STAMP := $(DOORS)/.installed
SCRIPTS := .venv-scripts
SCRIPTS_STAMP := $(SCRIPTS)/.installed
JOBS ?= 2
SHARD ?= 1/1
BUDGET ?= 0.1

# The tests start Python thousands of times: bytecode is kept where containers say otherwise, too.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test coverage test-doors test-scripts test-all test-modes check format docs site peers clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

venv: $(STAMP) ## .venv with tcir (editable) and what the tests need

$(STAMP): EXTRAS := test
$(DOORS_STAMP): EXTRAS := test,torch,networks,onnx,jax,triton,cute,prove
$(SCRIPTS_STAMP): EXTRAS := test,cuda,tilelang,pallas
$(STAMP) $(DOORS_STAMP) $(SCRIPTS_STAMP): %/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv "$*"
	"$*/bin/python" -m pip install --quiet --upgrade pip
	"$*/bin/python" -m pip install --quiet -c constraints.txt -e '.[$(EXTRAS)]'
	@touch "$@"

demo: $(STAMP) ## a ResNet-50 layer and an NVFP4 GEMV from linalg to cubin, executed
	@mkdir -p build
	"$(BIN)/python" -m tcir.tools.tc_opt examples/resnet50_conv2_3x3.mlir \
	    --pipeline=conv-shift-reuse --emit=cubin -o build/resnet50_conv2_3x3.cubin --validate-each --strict
	"$(BIN)/python" examples/nvfp4_gemv_full_size.py build/nvfp4_gemv_7168x2048x4.cubin

test: $(STAMP) ## the quick tests, 5 minutes on 2 cores; BUDGET=1: also those of up to a second each
	"$(BIN)/python" -m tcir.tools.dev.run_tests -j $(JOBS) --budget $(BUDGET) \
	    --junit build/quick.xml

coverage: $(STAMP) ## the lines of tcir that `make test` runs, by folder; with Python 3.12 or later in minutes
	@mkdir -p build
	COVERAGE_CORE=sysmon "$(BIN)/python" -m pytest -q -n $(JOBS) -m "not slow" --budget=$(BUDGET) \
	    --cov=tcir --cov-report=json:build/coverage.json test
	"$(BIN)/python" -m tcir.tools.dev.coverage_rooms build/coverage.json

test-doors: $(DOORS_STAMP) ## tests with PyTorch, ONNX, JAX, Triton, CuTe DSL and the prover, in .venv-doors: none may be skipped
	"$(DOORS)/bin/python" -m tcir.tools.dev.run_tests -j $(JOBS) --only-skips 'is installed$$|is there$$|no GPU' \
	    test/torch_models test/onnx_models test/jax_functions test/triton_scripts \
	    test/cute_scripts test/prover test/doors test/endtoend/test_shift_cases.py

test-scripts: $(SCRIPTS_STAMP) ## tests with CuPy, numba.cuda, cuda.core, load_inline, TileLang and Pallas, in .venv-scripts: none may be skipped
	PATH="$(abspath $(SCRIPTS))/bin:$$PATH" "$(SCRIPTS)/bin/python" -m tcir.tools.dev.run_tests -j $(JOBS) --all \
	    --only-skips 'is there$$' test/cuda_scripts

test-all: $(STAMP) ## all tests, or one of N parts of them with SHARD=I/N; TCIR_ORDERS=10 tries ten completion orders, not three
	"$(BIN)/python" -m tcir.tools.dev.run_tests -j $(JOBS) --all --shard $(SHARD) --junit build/all.xml

test-modes: $(STAMP) ## the machine's quick tests in every mode: no lockstep, no compiled code, two processes
	for mode in apart together interpreted jobs; do \
	    "$(BIN)/python" -m pytest -q -n $(JOBS) -m "not slow" --mode=$$mode --timeout=1800 \
	        test/corpus test/machine test/ptx test/hopper || exit 1; \
	done

check: $(STAMP) ## format, lint, types, who imports whom, sizes, English
	"$(BIN)/ruff" format --check .
	"$(BIN)/ruff" check .
	"$(BIN)/python" -m tcir.tools.dev.check_imports
	"$(BIN)/python" -m tcir.tools.dev.measures
	"$(BIN)/python" -m tcir.tools.dev.style

format: $(STAMP) ## format and fix what ruff can
	"$(BIN)/ruff" format .
	"$(BIN)/ruff" check --fix .

docs: $(STAMP) ## write the generated pages and pictures of docs/
	"$(BIN)/python" -m tcir.tools.dev.ops_page
	"$(BIN)/python" -m tcir.tools.dev.tensor_core_page
	"$(BIN)/python" -m tcir.tools.dev.hazard_page
	"$(BIN)/python" -m tcir.tools.dev.barrier_page
	"$(BIN)/python" -m tcir.tools.dev.walk
	"$(BIN)/python" -m tcir.tools.dev.kernels_page
	"$(BIN)/python" -m tcir.viz.pictures
	"$(BIN)/python" -m tcir.tools.dev.ptx_coverage
	"$(BIN)/python" -m tcir.tools.dev.assumptions
	"$(BIN)/python" -m tcir.tools.dev.time_page
	"$(BIN)/python" -m tcir.tools.dev.roofline_page

site: $(STAMP) ## the documentation as a site, in build/site (extra docs)
	"$(BIN)/python" -m pip install --quiet -c constraints.txt -e '.[docs]'
	"$(BIN)/python" -m mkdocs build --strict

peers: $(STAMP) ## kernels of other compilers and libraries on the simulated machine (those that are installed)
	"$(BIN)/python" -m peers.run --jobs $(JOBS) --write docs/reference

clean: ## remove what was built
	rm -rf build "$(VENV)" "$(DOORS)" src/tcir.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
