/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_PREDICT_AHEAD_H_INCLUDED
#define ZC_BENCH_PREDICT_AHEAD_H_INCLUDED

#include <array>
#include <string>
#include <vector>

#include "accuracy.h"
#include "recorded_run.h"

/** A predictor of Figure 1. */
struct foreteller {
    const char *name;  /* as zc-predict has it */
    const char *label; /* in pictures */
};
constexpr std::array<foreteller, 4> kForetellers = {{{"graph", "graph (G)"},
                                                     {"dpd-fitted", "DPD (D), window fitted"},
                                                     {"dpd", "DPD, window 256"},
                                                     {"default", "zc's default"}}};

/** How well each predictor did on one run. */
struct foretold {
    const recorded_run *run;
    std::array<zc::report::accuracy, kForetellers.size()> by; /* as in kForetellers */
};

/** Posting order, as in the paper. The result points into @runs. */
std::vector<foretold> foretell(const std::vector<recorded_run> &runs);

/** Percent right; a negative number: there was no such message. */
double percent(const foretold &f, size_t predictor, zc::report::part what,
               zc::report::size_class size, uint32_t horizon);

/** Figure 1: by processes, +1 and +10, over 8 KiB. Writes @path. */
void draw_by_processes(const std::vector<foretold> &all, const std::string &path);

/** Beyond the paper: every horizon, mean over the runs of a program, over 8 KiB. */
void draw_by_horizon(const std::vector<foretold> &all, zc::report::part what,
                     const std::string &path);

/** What the paper says of Figure 1, and what these runs say of it. */
struct statement {
    std::string paper;
    std::string here;
};
std::vector<statement> statements(const std::vector<foretold> &all);

#endif
