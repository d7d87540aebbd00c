/* SPDX-License-Identifier: BSD-3-Clause */

/* Accuracy on made-up programs that are not among the recorded ones. */
#include <gtest/gtest.h>

#include "prediction_report.h"
#include "programs.h"

using namespace zc::report;
using namespace zcp_test;

namespace {

/** Floors in percent, of messages sent before their receive was posted. */
struct program {
    const char *name;
    trace (*receives)();
    double exact;
    double congruent;
};

void PrintTo(const program &p, std::ostream *out)
{
    *out << p.name;
}

/* What each leaves is what cannot be known: first messages, moved buffers, sums of sizes that
 * have not come yet. */
constexpr program kPrograms[] = {
    {"particles", particles, 99.5, 99.5},
    {"packed_particles", packed_particles, 16, 16},
    {"triple_buffers", triple_buffers, 98.5, 99.5},
    {"adaptive_mesh", adaptive_mesh, 96, 99.5},
    {"any_source_ring", any_source_ring, 82, 99},
    {"job_queue", job_queue, 99, 99.5},
    {"step_tags", step_tags, 99, 99.5},
    {"communicator_churn", communicator_churn, 99.5, 99.5},
    {"allocator_churn", allocator_churn, 0, 99},
    {"panels", panels, 90.5, 99},
    {"alternating_phases", alternating_phases, 99, 99},
    {"many_peers", many_peers, 91.5, 99.5},
    {"random_addresses", random_addresses, 0, 0},
    {"random_sizes_and_addresses", random_sizes_and_addresses, 0, 0},
};

class ProgramTest : public testing::TestWithParam<program> {
  protected:
    ProgramTest() : trace_(GetParam().receives()) {}

    double percent(const char *predictor, bool congruent) const
    {
        const auto counts = measure_landing(trace_, predictor).by_class[over_8k];
        return share{congruent ? counts.congruent : counts.exact, counts.n}.percent();
    }

    trace trace_;
};

INSTANTIATE_TEST_SUITE_P(MadeUp, ProgramTest, testing::ValuesIn(kPrograms),
                         [](const testing::TestParamInfo<program> &of) {
                             return std::string(of.param.name);
                         });

TEST_P(ProgramTest, LandsAsWellAsCanBe)
{
    EXPECT_GE(percent("default", false), GetParam().exact);
    EXPECT_GE(percent("default", true), GetParam().congruent);
}

TEST_P(ProgramTest, LandsNoWorseThanTheBaselines)
{
    const double ours = percent("default", false);
    for (const char *other : {"last", "last-size", "last-sender", "graph", "dpd"})
        EXPECT_GE(ours, percent(other, false) - 0.5) << other;
}

TEST_P(ProgramTest, WhatIsSaidWithConfidenceIsRight)
{
    const share sure = measure_landing(trace_, "default").calibration.back();
    EXPECT_TRUE(sure.n == 0 || sure.percent() >= 90) << sure.right << " of " << sure.n;
}

TEST_P(ProgramTest, ForetellsTheNextNoWorseThanTheReferences)
{
    const accuracy ours = measure_accuracy(trace_, "default", order::post);
    for (const char *other : {"graph", "dpd", "longest-match"}) {
        const accuracy theirs = measure_accuracy(trace_, other, order::post);
        for (const uint32_t h : {1u, 10u})
            EXPECT_GE(ours.ahead[over_8k][h - 1].percent(),
                      theirs.ahead[over_8k][h - 1].percent() - 1)
                << other << " +" << h;
    }
}

TEST(SilenceTest, LittleIsSaidOfRandomAddresses)
{
    for (const trace &trace : {random_addresses(), random_sizes_and_addresses()}) {
        const auto counts = measure_landing(trace, "default").by_class[over_8k];
        EXPECT_GE((share{counts.silent, counts.n}.percent()), 95) << trace.run;
    }
}

} // namespace
