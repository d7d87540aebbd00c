/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_PREDICT_STREAM_TABLE_H_INCLUDED
#define ZC_BENCH_PREDICT_STREAM_TABLE_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "recorded_run.h"

/** A period of a stream, as the detector of Freitag et al. has it. */
struct pattern {
    uint32_t period;
    size_t messages;  /* that came while it was the period */
    size_t addresses; /* different ones in the pattern */
    size_t sizes;
};

/** A row of Table 1. */
struct stream_row {
    size_t messages;
    size_t over_8k;
    size_t addresses; /* different ones in the whole stream */
    size_t sizes;
    std::vector<pattern> fitted; /* by the messages that came meanwhile, most first */
    std::vector<pattern> fixed;  /* window of 256; the same */
};

/** The row that the paper's Table 1 has. */
struct printed_row {
    const char *program;
    int processes;
    size_t messages;
    size_t addresses; /* in the pattern */
    size_t sizes;
    uint32_t period;
};

stream_row describe_stream(const recorded_run &run);

/** Nothing for what is not in the paper. */
std::optional<printed_row> printed(const recorded_run &run);

#endif
