/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_PLOT_H_INCLUDED
#define ZC_BENCH_PLOT_H_INCLUDED

#include <string>
#include <utility>
#include <vector>

/** One line of a diagram. */
struct curve {
    std::string label;
    std::vector<std::pair<double, double>> points; /* where y is NaN, the line is interrupted */
    bool dashed = false;
    int colour = -1; /* number in the palette; -1: that of its place among the curves */
};

/** A diagram with one or more panels, all with the same axes. */
struct plot {
    std::string title;
    std::string x_label;
    std::string y_label;
    double y_most = 1;    /* of the axis, which begins at 0 */
    bool x_powers = true; /* logarithmic, base 2 */
    std::vector<std::pair<std::string, std::vector<curve>>> panels; /* caption, curves */
    size_t columns = 0; /* panels side by side; 0: all */
};

/** Writes @p as SVG. Throws std::runtime_error if that fails. */
void write_svg(const plot &p, const std::string &path);

#endif
