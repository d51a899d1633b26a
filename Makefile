# Every target works on a fresh clone; tools/bootstrap makes .venv and builds what changed.
VENV_PYTHON := .venv/bin/python
TESTS ?= tests
PYTEST_ARGS ?=
LONG_ARGS ?=
BASE ?= main
SCENARIOS ?=
ROWS ?=
COMPARE_ARGS ?=

.PHONY: help build quickstart spark-demo test test-quick test-long test-clients test-deploy test-spark-versions \
	docs lint format sanitize coverage bench bench-official bench-peers bench-growth bench-serve bench-spark bench-spark-peers oracle compare instructions wheel wheels clean distclean

help:
	@echo "make quickstart  replay 336,776 flights through a durable topic"
	@echo "make spark-demo  delays of those flights, computed by Spark from topic to topic"
	@echo "make test        what must pass, in minutes; TESTS=tests/core or PYTEST_ARGS='-k ledger' for some"
	@echo "make test-quick  most of it in about two minutes, for daily work; TESTS=tests/core asks for few packages"
	@echo "make test-long   campaigns of kills, crashes, threads and chance, for hours; goes on where it stopped"
	@echo "make test-clients  the official Go, Java and Node clients and pulsar-admin against pulsarx serve, where there are Go, Maven and npm"
	@echo "make test-deploy   the steps of deploy/Dockerfile, and its image as a container; needs root and debootstrap, minutes"
	@echo "make test-spark-versions  what is Spark's own, under each PySpark and by Spark Connect"
	@echo "make docs        the site in build/site, warnings are errors; build/site/index.html opens without a server"
	@echo "make lint        ruff, mypy, stubs and types, known vulnerabilities of dependencies, the tidy tests"
	@echo "make format      what lint asks for and ruff can do itself"
	@echo "make sanitize    tests of the compiled parts under address and undefined-behaviour sanitizers"
	@echo "make coverage    which branches of src/core its tests take, line by line; needs gcc's gcov"
	@echo "make bench       every claim about the speed of the library, as a table"
	@echo "make bench-serve what pulsarx serve takes over TCP, minutes"
	@echo "make bench-official  what a call costs beside the official client, minutes"
	@echo "make bench-peers beside other queues and stores, minutes; fetches what it can into build/peers;"
	@echo "                 PEERS_ARGS=--pulsar a real Apache Pulsar too, '--only redis' some, '--rounds 11' more"
	@echo "make bench-growth what a message costs when there is more of something, a quarter of an hour"
	@echo "make bench-spark every claim about Spark, some minutes; each writes its part of benchmarks/RESULTS.md"
	@echo "make bench-spark-peers  Spark beside Parquet, Delta and Kafka, minutes; fetches them into build/spark_peers (1.1 GB);"
	@echo "                 SPARK_PEERS_ARGS='--rows 1000000 5000000 20000000 --sizes 100 1024' for more rows, '--only kafka' for some"
	@echo "make oracle      the same programs on a real Apache Pulsar and on PulsarX, and what a call costs there;"
	@echo "                 needs Java and Maven"
	@echo "make compare     is anything slower? BASE=main or a folder; ROWS=send,receive for some"
	@echo "make instructions  how many instructions hot calls take, by valgrind, and which rose by more than 3 %"
	@echo "make wheel       a wheel of what is built and an sdist in dist/, tried in a fresh environment"
	@echo "make wheels      wheels in dist/ for all Pythons and platforms, tried; WHEELS=cp312 for some"
	@echo "make build       only build, in place; PULSARX_DEBUG=1 and others: CONTRIBUTING.md"
	@echo "make clean       remove everything built; distclean also .venv"

build:
	@tools/bootstrap

quickstart:
	@tools/bootstrap quickstart
	$(VENV_PYTHON) examples/quickstart.py

spark-demo:
	@tools/bootstrap spark spark-demo
	$(VENV_PYTHON) examples/spark_demo.py

# What is compiled of the tests is kept, whatever the caller wants elsewhere: without it each part
# spends seconds on rewriting their assertions.
RUN_TESTS := env -u PYTHONDONTWRITEBYTECODE $(VENV_PYTHON) tools/run_tests.py
test:
	@tools/bootstrap test spark
	@$(RUN_TESTS) $(TESTS) $(PYTEST_ARGS)

# Without Spark and Java, and with what the tests of these folders need alone.
test-quick:
	@tools/bootstrap $(TESTS)
	@$(RUN_TESTS) $(TESTS) -m quick $(PYTEST_ARGS)

test-long:
	@tools/bootstrap test spark
	$(VENV_PYTHON) tests/long/long_run.py $(LONG_ARGS)

# What is Spark's own, under each PySpark that is supported, and by Spark Connect. Each is
# downloaded once (450 MB) into build/, but for the one of .venv. About two minutes for a version.
SPARK_VERSIONS ?= 4.2 4.3
SPARK_TESTS := $(addprefix tests/spark/test_,data_source.py stream.py exactly_once.py cluster.py \
	cluster_stream.py connect.py)
CONNECT_PACKAGES := grpcio grpcio-status googleapis-common-protos zstandard
test-spark-versions:
	@tools/bootstrap test spark
	@set -e; for version in $(SPARK_VERSIONS); do \
	    place="$(CURDIR)/build/spark-$$version"; \
	    if [ ! -e "$$place/complete" ]; then \
	        rm -rf "$$place"; \
	        case "$$($(VENV_PYTHON) -c 'import pyspark; print(pyspark.__version__)')" in \
	            $$version.*) spark= ;; \
	            *) spark="pyspark==$$version.*" ;; \
	        esac; \
	        $(VENV_PYTHON) tools/packages.py "$$place" $$spark $(CONNECT_PACKAGES); \
	        touch "$$place/complete"; \
	    fi; \
	    PYTHONPATH="$$place" $(VENV_PYTHON) -c 'import pyspark; print("PySpark", pyspark.__version__)'; \
	    env -u PYTHONDONTWRITEBYTECODE PYTHONPATH="$$place" $(VENV_PYTHON) -m pytest -q \
	        $(SPARK_TESTS) $(PYTEST_ARGS); \
	done

test-clients:
	@tools/bootstrap tests/server
	$(VENV_PYTHON) -m pytest -m long $(addprefix tests/server/test_,go_client.py java_client.py node_client.py pulsar_admin.py) $(PYTEST_ARGS)

docs:
	@tools/bootstrap docs
	$(VENV_PYTHON) -m sphinx -q -W --keep-going -E -c docs/site . build/site
	@echo "docs: build/site/index.html"

# Compiles the library for the image, unless PULSARX_IMAGE_WHEEL names a folder whose dist/ has a wheel.
test-deploy:
	@tools/bootstrap tests/deploy
	$(VENV_PYTHON) -m pytest -m "long or not long" tests/deploy $(PYTEST_ARGS)

lint:
	@tools/bootstrap test spark lint
	$(VENV_PYTHON) -m ruff check .
	$(VENV_PYTHON) -m ruff format --check .
	MYPYPATH= $(VENV_PYTHON) -m mypy -p pulsarx -m pytest_pulsarx
	$(VENV_PYTHON) -m mypy setup.py tools wheels
	$(VENV_PYTHON) tools/check_types.py $(VENV_PYTHON)
	$(VENV_PYTHON) tools/audit_dependencies.py
	$(VENV_PYTHON) -m pytest -q tests/tidy

format:
	@tools/bootstrap test lint
	$(VENV_PYTHON) -m ruff check --fix .
	$(VENV_PYTHON) -m ruff format .

# No load of the machine moves it; a minute. --write keeps what was counted.
instructions:
	@tools/bootstrap test
	$(VENV_PYTHON) benchmarks/instructions.py $(COMPARE_ARGS)

SANITIZED := tests/core tests/pycore tests/reliability/test_fuzz_targets.py
sanitize:
	@PULSARX_SANITIZE=address,undefined tools/bootstrap $(SANITIZED)
	$(VENV_PYTHON) tools/sanitized.py -m pytest $(SANITIZED) $(PYTEST_ARGS)

coverage:
	@PULSARX_BRANCHES=1 tools/bootstrap tests/core tests/pycore
	$(VENV_PYTHON) tools/branches.py

bench:
	@tools/bootstrap bench
	$(VENV_PYTHON) benchmarks/run.py
	$(VENV_PYTHON) tools/write_figures.py

bench-official:
	@tools/bootstrap test bench
	$(VENV_PYTHON) benchmarks/run.py --group official
	$(VENV_PYTHON) tools/write_figures.py

PEERS_ARGS ?=
bench-peers: export PYTHONPATH := benchmarks
bench-peers:
	@tools/bootstrap test bench
	$(VENV_PYTHON) -m peers.get
	$(VENV_PYTHON) -m peers.rounds $(PEERS_ARGS)
	$(VENV_PYTHON) -m peers.table
	$(VENV_PYTHON) -m peers.draw

GROWTH_ARGS ?=
bench-growth: export PYTHONPATH := benchmarks
bench-growth:
	@tools/bootstrap test bench
	$(VENV_PYTHON) -m peers.get
	$(VENV_PYTHON) -m growth.run $(GROWTH_ARGS)
	$(VENV_PYTHON) -m growth.page

bench-serve:
	@tools/bootstrap test bench
	$(VENV_PYTHON) benchmarks/run.py --group serve
	$(VENV_PYTHON) tools/write_figures.py

bench-spark:
	@tools/bootstrap spark bench
	$(VENV_PYTHON) benchmarks/run.py --group spark
	$(VENV_PYTHON) tools/write_figures.py

SPARK_PEERS_ARGS ?=
bench-spark-peers: export PYTHONPATH := benchmarks
bench-spark-peers:
	@tools/bootstrap test bench spark
	$(VENV_PYTHON) -m peers.get
	$(VENV_PYTHON) -m spark_peers.get
	$(VENV_PYTHON) -m spark_peers.run $(SPARK_PEERS_ARGS)
	$(VENV_PYTHON) -m spark_peers.page

oracle:
	@tools/bootstrap test oracle
	$(VENV_PYTHON) tests/oracle/oracle.py $(SCENARIOS)
	$(VENV_PYTHON) tools/write_figures.py

compare:
	@tools/bootstrap bench
	$(VENV_PYTHON) benchmarks/compare.py $(BASE) --rows=$(ROWS) $(COMPARE_ARGS)

# The time of the commit, so that the same sources make the same bytes; an sdist has any.
wheel: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1700000000)
wheel:
	@tools/bootstrap wheel release
	@$(VENV_PYTHON) wheels/make_wheels.py --here
	$(VENV_PYTHON) setup.py -q sdist -d dist
	$(VENV_PYTHON) wheels/check_package.py dist

# An hour for all; WHEELS="cp312 cp313-manylinux_aarch64" for some, WHEEL_TESTS=tests/api/consuming
# tries each with these tests, too.
WHEELS ?=
WHEEL_TESTS ?=
wheels:
	@tools/bootstrap wheels
	@$(VENV_PYTHON) wheels/make_wheels.py $(WHEELS) $(if $(WHEEL_TESTS),--tests $(WHEEL_TESTS))

clean:
	rm -rf build dist benchmarks/scratch .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
	rm -rf python/*.egg-info ./*.egg-info
	rm -f python/pulsarx/*.so
	find src -name '*.c' -delete -o -name '*.c.of' -delete
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv
