# The tasks people type. Commands only: what they do is in pyproject.toml, setup.py and the tests.
PYTHON ?= python3

.PHONY: build test quick asan coverage lint bench bench-programs docs check clean

build:            ## the extension in place, and what the tests need
	$(PYTHON) -m pip install -e '.[test]'

test:             ## everything, as CI runs it
	$(PYTHON) -m pytest

quick:            ## the tests that take less than a minute together
	$(PYTHON) -m pytest tests/test_graph.py tests/test_table.py tests/test_transforms*.py tests/test_cases_*.py

asan:             ## the tests under the address and undefined-behaviour sanitizers; for Linux and gcc
	rm -rf build/asan
	PYGRAD_SANITIZE=1 $(PYTHON) -m pip install --no-build-isolation --no-deps --target build/asan .
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONMALLOC=malloc PYTHONPATH=build/asan PYGRAD_GRAPHS=800 PYGRAD_LEAK_GRAPHS=4000 pytest tests -p no:cacheprovider

coverage:         ## lines of Python and of C that the tests reach
	rm -rf build/coverage
	PYGRAD_COVERAGE=1 $(PYTHON) setup.py -q build_ext --build-lib build/coverage/lib
	cp -r pygrad/*.py pygrad/data build/coverage/lib/pygrad/
	PYTHONPATH=build/coverage/lib pytest tests -p no:cacheprovider --cov=build/coverage/lib/pygrad --cov-report=term
	gcovr --root . --filter 'csrc/.*' build/coverage --txt-metric line

lint:             ## style and types
	ruff check .
	ruff format --check .
	mypy

bench:            ## one table of ratios
	$(PYTHON) bench/table.py

bench-programs:   ## tables of compiled functions and batches; ADBENCH_DATA names the folder data of microsoft/ADBench
	$(PYTHON) bench/table.py --programs

docs:             ## the op table in docs/ops.md, made anew
	$(PYTHON) -m pygrad ops --markdown > docs/ops.md

check: lint test asan

clean:
	rm -rf build dist *.egg-info pygrad/*.so
