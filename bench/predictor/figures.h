/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_PREDICT_FIGURES_H_INCLUDED
#define ZC_BENCH_PREDICT_FIGURES_H_INCLUDED

#include <string>
#include <vector>

#include "../figures/report.h"
#include "cost.h"

/** One thing asked of the predictor, and what came of it. */
struct figure_row {
    std::string what;
    std::string unit;
    bool at_least; /* or at most */
    double required;
    double reached;
    std::vector<double> values; /* by run, where there are several */
    std::string worst;          /* the run that was worst, if that is known */
    std::string note;

    bool met() const { return at_least ? reached >= required : reached <= required; }
};

/** What the recorded receives below @folder say. Throws trace_error. */
std::vector<figure_row> accuracy_figures(const std::string &folder, const std::string &lines);
std::vector<figure_row> cost_figures(const costs &costs);
/** One million events of 64 ranks (@quick: fewer). */
std::vector<figure_row> pattern_figures(bool quick);

/** Required and reached, side by side. Returns how many were missed. */
size_t print_figures(const std::vector<figure_row> &rows);
void record_figures(const std::vector<figure_row> &rows, report &out);

#endif
