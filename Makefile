# SPDX-License-Identifier: Apache-2.0
# From a bare Debian machine to a tested build; `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory

JOBS ?= 2
PREFIX ?= /usr/local
CMAKE_ARGS ?=
CXX_FILES = git ls-files '*.h' '*.cpp'

# Configures a preset again only when something that it depends on was changed: make's own words or the place.
define configure
	@wanted='$(CURDIR) $(CMAKE_ARGS) $(ACCRUE_TORCH) $(Torch_DIR)'; \
	if [[ ! -f $(2)/build.ninja || "$$(cat $(2)/.configured 2>/dev/null)" != "$$wanted" ]]; then \
	  cmake --fresh --preset $(1) -Wno-dev --log-level=STATUS $(CMAKE_ARGS); \
	  printf '%s\n' "$$wanted" > $(2)/.configured; \
	fi
endef

.PHONY: all setup demo test soak help format lint asan tsan coverage fuzz bench docs install clean distclean

all: setup ## Build the libraries, the program, the examples and the tests into build/ (the default)
	$(call configure,release,build)
	@cmake --build build -j $(JOBS)

setup: ## Install what is missing: system packages (as root) and LibTorch in .venv
	@tools/setup

demo: all ## Train on the shipped digits, prove the split, run the two tutorial loops
	@tools/demo

test: all ## Build, then run every test
	@ctest --preset release

soak: all ## Run the tests that take many minutes
	@ctest --preset soak

help: ## List the targets
	@printf 'Targets (JOBS=%s, PREFIX=%s, CMAKE_ARGS=... may be given):\n' '$(JOBS)' '$(PREFIX)'
	@sed -nE 's/^([a-z]+):[^#]*## (.*)/  \1\t\2/p' Makefile | expand -t 14

format: ## Rewrite the C++ files of the repository in the project's format
	@tools/setup lint
	@$(CXX_FILES) -z | xargs -0 clang-format -i

lint: ## Check format and run clang-tidy over accrue::core
	@tools/setup lint
	@tools/lint

asan: setup ## Build and test under AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan/
	$(call configure,asan,build-asan)
	@cmake --build build-asan -j $(JOBS)
	@ctest --preset asan

tsan: setup ## Build and test under ThreadSanitizer, in build-tsan/
	$(call configure,tsan,build-tsan)
	@cmake --build build-tsan -j $(JOBS)
	@ctest --preset tsan

coverage: ## Build and test with line counts, in build-coverage/; prints a table
	@tools/setup coverage
	$(call configure,coverage,build-coverage)
	@cmake --build build-coverage -j $(JOBS)
	@ctest --preset coverage
	@gcovr --root . --filter accrue/ --print-summary build-coverage

fuzz: ## Build accrue::core with clang, ready for fuzzing, in build-fuzz/
	@tools/setup fuzz
	$(call configure,fuzz,build-fuzz)
	@cmake --build build-fuzz -j $(JOBS)

bench: all ## Measure against PyTorch, torch.compile, jax and accelerate in turns (half an hour)
	@benchmarks/run

docs: ## Check the documents' links and commands
	@tools/check_docs

install: all ## Install libraries, headers, program and package files under PREFIX
	@cmake --install build --prefix '$(PREFIX)'

clean: ## Remove the build folders
	@rm -rf build build-asan build-tsan build-coverage build-fuzz build-dev build-core build-lint build-consumer

distclean: clean ## Remove .venv too
	@rm -rf .venv
