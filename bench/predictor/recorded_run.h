/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_PREDICT_RECORDED_RUN_H_INCLUDED
#define ZC_BENCH_PREDICT_RECORDED_RUN_H_INCLUDED

#include <string>
#include <vector>

#include "receive_trace.h"

/** What one rank of a recorded run of a named program received. */
struct recorded_run {
    std::string program; /* "bt"; in small letters */
    char problem;        /* class of NAS benchmarks, 'A' …; 0: none is named */
    int processes;
    zc::report::trace trace;
};

/**
 * Rank @rank of every run below the folders @paths, in order of program and processes. A run is
 * named PROGRAM[-CLASS]-PROCESSES, with or without "npb-" in front. Throws trace_error: also for
 * a run of another name, one without that rank, and one that is there twice.
 */
std::vector<recorded_run> load_runs(const std::vector<std::string> &paths, int rank);

#endif
