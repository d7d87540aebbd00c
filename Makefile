# Thin on purpose: every target is one script or one CMake preset.
#
#   make demo            set up this machine and show what zc does
#   make test            set up this machine and run the tests (tests/run --help: single ones)
#   make test-nightly    those that take longer: more hosts, kernels, programs, launchers
#   make test-mpich      MPICH's own tests, all of them, on three networks
#   make bench           libzc against memcpy, and bench-kmod
#   make bench-kmod      instructions of zc.ko beside mremap, UFFDIO_MOVE and memcpy
#                        (in QEMU; without it, skipped)
#   make bench-predict   the predictor: its cost, and figures required beside reached ones,
#                        on the recorded receives in TRACES=FOLDER (default: tests/data); and
#                        Table 1 and Figure 1 of Freitag et al. (docs/papers/freitag.md)
#   make papers          figures of the papers that zc follows, drawn again from zc (docs/papers):
#                        what is computed in seconds, and what bench-papers has measured; says what is
#                        not measured yet
#   make bench-papers    measures what make papers draws and seconds do not suffice for (bench/run npb,
#                        demo-comigrate, policies, others; about six hours), and draws it.
#                        QUICK=yes: half an hour, small problems
#   make bench-npb       the evaluation of Cores et al.: eight programs move, by way of memory and of
#                        the disk, on 4 to 36 ranks (three hours); QUICK=yes: on 4 (a quarter of an hour)
#   make bench-lane      lanes beside UCX: 10 Gbit/s and bare, full cores and spare (two minutes)
#   make bench-mpi       ch4:zc against other MPI libraries over TCP, bare and at 10 Gbit/s:
#                        half an hour, and once the time to build an MPICH with ch4:ofi.
#                        LONG=yes: also at 1 Gbit/s, and collectives of 4 and 8 ranks
#   make bench-proof     which programs gain by ch4:zc, and does zc-forecast tell? (half an hour;
#                        QUICK=yes: a few minutes)
#   make demo-migrate    ranks of a running job leave an overloaded host
#   make demo-comigrate  jobs move themselves: joins, shrinks, replaces; groups, overhead
#   make bench-migrate   what a migration costs, by way of memory and of the disk
#   make install PREFIX=DIR   MPICH with ch4:zc (mpicc, mpicxx, and mpifort where gfortran is),
#                             libraries, tools, man pages; says what it built.
#                             FULL=yes: with yaksa as datatype engine
#   make deb             Debian packages in out/deb; FULL=yes as above
#   make check-fast      unit tests only, nothing installed
#
# MPICH is built once and kept in ~/.cache/zc (or ZC_CACHE_DIR).

SHELL := /bin/bash
JOBS ?= $(shell nproc)

.PHONY: deb demo-comigrate checks all demo test test-nightly test-mpich check-fast bench install packages build sanitizers mpich clean bench-kmod bench-predict papers bench-papers bench-npb bench-lane bench-mpi bench-proof demo-migrate bench-migrate

all: build

packages:
	.ci/install-packages

# What is installed; `checks` builds the programs of tests and benchmarks, too.
build: packages
	cmake --preset release > build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	cmake --build build/release -j $(JOBS)

checks: build
	cmake --build --preset release -j $(JOBS)

mpich: build
	mpi-ch4-netmod/build

demo: mpich
	bench/run demo --mpich "$$(mpi-ch4-netmod/build --print-prefix)"

demo-migrate: mpich
	bench/run demo-migrate --mpich "$$(mpi-ch4-netmod/build --print-prefix)"

demo-comigrate: mpich
	bench/run demo-comigrate --mpich "$$(mpi-ch4-netmod/build --print-prefix)"

bench-migrate: mpich
	bench/run migrate --mpich "$$(mpi-ch4-netmod/build --print-prefix)"
	bench/run others --mpich "$$(mpi-ch4-netmod/build --print-prefix)"

check-fast: checks
	ctest --preset release -j $(JOBS)

test: mpich checks
	tests/run --json out/tests.json

test-nightly: mpich checks
	tests/run --tag nightly --json out/tests-nightly.json

test-mpich: mpich
	tests/run mpich --tag mpich-everywhere --json out/mpich-tests.json

bench: checks
	build/release/bin/bench_deliver --out out/libzc.jsonl
	$(MAKE) bench-kmod

# 77: not possible here, which it says.
bench-kmod: packages
	bench/kmod/run || [ $$? = 77 ]

# Programs append their points to out/papers.jsonl. Those of the paper $(1) are made again; what other
# commands have measured, in hours, stays.
forget = test ! -e out/papers.jsonl || sed -i '/"paper": *"$(1)"/d' out/papers.jsonl

RECORDED := bench/figures/data
define freitag
	$(call forget,freitag)
	build/release/bin/freitag --folder out --traces $(RECORDED)/npb
endef

TRACES ?= tests/data
bench-predict: checks
	build/release/bin/bench_predict --traces "$(TRACES)" --out out/predict.jsonl
	$(freitag)

papers: checks
	$(call forget,singh-graham)
	build/release/bin/figures --folder out \
		--trace 2=$(RECORDED)/master-slave-8.csv.gz --trace 3=$(RECORDED)/master-slave-8.csv.gz \
		--trace 4=$(RECORDED)/fft-8.csv.gz --trace 5=$(RECORDED)/master-slave-4.csv.gz \
		--trace 6=$(RECORDED)/distribution-8.csv.gz
	$(freitag)
	bench/run papers

# Each measurement draws what it has, whatever becomes of the others.
bench-papers: mpich papers
	bench/run papers --measure --mpich "$$(mpi-ch4-netmod/build --print-prefix)" \
		$(if $(QUICK),--quick)

bench-npb: mpich
	bench/run npb --mpich "$$(mpi-ch4-netmod/build --print-prefix)" $(if $(QUICK),--quick)

bench-lane: checks
	bench/run lane

# A peer that cannot be built is reported by the benchmark itself.
bench-mpi: mpich
	-mpi-ch4-netmod/build-peer
	bench/run mpi --mpich "$$(mpi-ch4-netmod/build --print-prefix)" $(if $(LONG),--long)

bench-proof: mpich
	bench/run proof --mpich "$$(mpi-ch4-netmod/build --print-prefix)" $(if $(QUICK),--quick)

install: build
	@test -n "$(PREFIX)" || { echo "usage: make install PREFIX=DIR" >&2; exit 2; }
	mpi-ch4-netmod/build $(if $(FULL),--full) --prefix "$(PREFIX)"

deb:
	.ci/install-packages --deb
	packaging/build-deb $(if $(FULL),--full) --jobs $(JOBS)

clean:
	rm -rf build out
