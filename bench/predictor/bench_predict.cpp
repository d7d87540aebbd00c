/* SPDX-License-Identifier: BSD-3-Clause */

/* What prediction costs, and every figure asked of it beside the one reached. */
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cost.h"
#include "figures.h"

namespace {

struct options {
    std::string out = "out/predict.jsonl";
    std::string traces;
    size_t batches = 200;
    bool quick = false;
};

void run(const options &options)
{
    std::vector<figure_row> rows;
    {
        report out("predict", options.out);
        rows = cost_figures(measure_costs(out, options.batches, options.quick));
        for (figure_row &row : pattern_figures(options.quick))
            rows.push_back(std::move(row));
        record_figures(rows, out);
    }
    if (!options.traces.empty()) {
        auto accuracy = accuracy_figures(options.traces, options.out);
        report out("predict", options.out, report::mode::append);
        record_figures(accuracy, out);
        accuracy.insert(accuracy.end(), rows.begin(), rows.end());
        rows = std::move(accuracy);
    }
    print_figures(rows);
}

} // namespace

int main(int argc, char **argv)
{
    options options;
    CLI::App app("cost of prediction, and the figures asked of it", "bench_predict");
    app.add_option("--out", options.out, "JSON lines go to this file");
    app.add_option("--traces", options.traces,
                   "folder of recorded receives to take the accuracy from; none: cost only");
    app.add_option("--batches", options.batches, "timed batches of 500 events per case")
        ->check(CLI::PositiveNumber);
    app.add_flag("--quick", options.quick, "fewer cases, small inputs: does it run?");
    CLI11_PARSE(app, argc, argv);

    try {
        run(options);
    } catch (const std::exception &problem) {
        fmt::print(stderr, "bench_predict: {}\n", problem.what());
        return 1;
    }
    return 0;
}
