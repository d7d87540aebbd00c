/* SPDX-License-Identifier: BSD-3-Clause */

/* Accuracy on recorded receives. The records are fixed and the engines are
 * deterministic, so the floors are the measured values, rounded down. */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "prediction_report.h"

using namespace zc::report;

namespace {

const std::vector<trace> &traces()
{
    static const std::vector<trace> loaded = load_traces(ZCP_TEST_DATA);
    return loaded;
}

const trace &find(const std::string &run, int rank)
{
    const auto found = std::find_if(traces().begin(), traces().end(),
                                    [&](const trace &t) { return t.run == run && t.rank == rank; });
    if (found == traces().end())
        throw trace_error(run + ": not in the test data");
    return *found;
}

double percent(const accuracy &accuracy, uint32_t horizon)
{
    return accuracy.ahead[over_8k][horizon - 1].percent();
}

double exact(const landing_result &result)
{
    const auto &counts = result.by_class[over_8k];
    return share{counts.exact, counts.n}.percent();
}

struct floor_of {
    const char *run;
    int rank;
    double next_1;
    double next_10;
    double keyed_10;
    double landing;
};

void PrintTo(const floor_of &f, std::ostream *out)
{
    *out << f.run << " rank " << f.rank;
}

constexpr floor_of kFloors[] = {
    {"npb-bt-A-25", 1, 99.4, 99.0, 99.5, 99.6}, {"npb-bt-A-4", 1, 99.4, 98.8, 99.5, 100.0},
    {"npb-cg-A-32", 1, 99.2, 97.8, 99.2, 99.3}, {"npb-cg-A-8", 1, 99.1, 97.6, 99.0, 99.1},
    {"npb-ft-A-16", 0, 96.8, 75.7, 87.5, 96.8}, {"npb-ft-A-16", 1, 97.6, 83.5, 87.5, 79.5},
    {"npb-ft-A-32", 0, 98.4, 87.8, 87.5, 88.6}, {"npb-ft-A-32", 1, 98.8, 91.7, 87.5, 71.1},
    {"npb-ft-A-4", 0, 87.5, 40.6, 62.5, 100.0}, {"npb-ft-A-4", 1, 90.6, 56.2, 62.5, 72.7},
    {"npb-ft-A-8", 0, 93.7, 59.3, 75.0, 84.8},  {"npb-ft-A-8", 1, 95.3, 71.8, 75.0, 87.5},
    {"npb-is-A-16", 0, 89.2, 73.8, 65.3, 43.5}, {"npb-is-A-16", 1, 90.3, 85.2, 82.3, 92.4},
    {"npb-is-A-32", 0, 90.0, 82.3, 64.4, 61.2}, {"npb-is-A-32", 1, 90.9, 90.9, 90.9, 84.6},
    {"npb-is-A-4", 0, 79.5, 34.0, 40.9, 69.2},  {"npb-is-A-4", 1, 77.2, 27.2, 34.0, 63.6},
    {"npb-is-A-8", 0, 86.3, 53.4, 59.0, 26.3},  {"npb-is-A-8", 1, 87.5, 62.5, 67.0, 77.1},
    {"npb-lu-A-16", 1, 96.9, 93.9, 96.9, 98.2}, {"npb-lu-A-4", 1, 97.4, 95.9, 97.9, 99.0},
    {"npb-mg-A-32", 1, 91.9, 67.8, 93.1, 95.0}, {"npb-mg-A-8", 0, 91.2, 68.5, 95.4, 97.0},
    {"npb-mg-A-8", 1, 91.2, 67.8, 95.4, 96.4},  {"npb-sp-A-4", 1, 99.7, 99.4, 99.7, 99.8},
};

class FloorTest : public testing::TestWithParam<floor_of> {};

/* From an array: a list of arguments takes the compiler minutes. */
INSTANTIATE_TEST_SUITE_P(Default, FloorTest, testing::ValuesIn(kFloors),
                         [](const testing::TestParamInfo<floor_of> &of) {
                             std::string name = of.param.run;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name + "_" + std::to_string(of.param.rank);
                         });

TEST_P(FloorTest, IsAsAccurateAsMeasured)
{
    const trace &trace = find(GetParam().run, GetParam().rank);
    const accuracy stream = measure_accuracy(trace, "default", order::post);
    EXPECT_GE(percent(stream, 1), GetParam().next_1);
    EXPECT_GE(percent(stream, 10), GetParam().next_10);
    const accuracy keyed = measure_keyed_accuracy(trace, "default", order::post);
    EXPECT_GE(percent(keyed, 10), GetParam().keyed_10);
    EXPECT_GE(exact(measure_landing(trace, "default")), GetParam().landing);
}

/* What the papers' predictors reach is a claim of ours about them: too high would
 * be as wrong as too low. */
TEST(ReferenceTest, GraphAndDpdReachWhatTheyReached)
{
    struct {
        const char *run;
        const char *predictor;
        uint64_t next_1;
        uint64_t next_10;
    } const expected[] = {
        {"npb-bt-A-4", "graph", 2400, 2388}, {"npb-bt-A-4", "dpd", 2144, 2135},
        {"npb-cg-A-8", "graph", 1225, 1171}, {"npb-cg-A-8", "dpd", 1062, 1057},
        {"npb-lu-A-4", "graph", 94, 0},      {"npb-lu-A-4", "dpd", 182, 182},
        {"npb-mg-A-8", "graph", 211, 28},    {"npb-mg-A-8", "dpd", 68, 59},
        {"npb-sp-A-4", "graph", 4800, 4788}, {"npb-sp-A-4", "dpd", 4544, 4535},
    };
    for (const auto &e : expected) {
        const accuracy got = measure_accuracy(find(e.run, 1), e.predictor, order::post);
        EXPECT_EQ(e.next_1, got.ahead[over_8k][0].right) << e.run << " " << e.predictor;
        EXPECT_EQ(e.next_10, got.ahead[over_8k][9].right) << e.run << " " << e.predictor;
    }
}

class ComparisonTest : public testing::Test {
  protected:
    static void SetUpTestSuite()
    {
        for (const trace &trace : traces())
            subjects_.push_back(measure(trace, {"default", "graph", "dpd", "longest-match", "last",
                                                "last-size", "last-sender"}));
    }
    static void TearDownTestSuite() { subjects_.clear(); }

    /* No run may be worse than that of @other by more than @margin. */
    static void compare(const char *other, figure figure, double margin)
    {
        const auto ours = values_by_run(subjects_, "default", figure, over_8k);
        const auto theirs = values_by_run(subjects_, other, figure, over_8k);
        ASSERT_EQ(ours.size(), theirs.size());
        for (size_t i = 0; i < ours.size(); i++)
            EXPECT_GE(ours[i].percent, theirs[i].percent - margin) << ours[i].run << " " << other;
    }

    static inline std::vector<subject> subjects_;
};

TEST_F(ComparisonTest, DefaultIsNowhereMuchWorseThanTheReferences)
{
    for (const char *other : {"graph", "dpd", "longest-match"}) {
        compare(other, figure::post_1, 1.0);
        compare(other, figure::post_10, 1.0);
    }
}

TEST_F(ComparisonTest, DefaultLandsNoWorseThanTheBaselines)
{
    for (const char *other : {"last", "last-size", "last-sender", "graph", "dpd"})
        compare(other, figure::exact, 0.5);
}

TEST_F(ComparisonTest, DefaultBeatsLastAddressWhereThereAreTwoBuffers)
{
    for (const char *run : {"npb-bt-A-4", "npb-sp-A-4"})
        EXPECT_GE(exact(measure_landing(find(run, 1), "default")),
                  exact(measure_landing(find(run, 1), "last-sender")) + 3.0);
}

TEST(CalibrationTest, WhatIsSaidWithConfidenceIsRight)
{
    for (const trace &trace : traces()) {
        const share sure = measure_landing(trace, "default").calibration.back();
        EXPECT_TRUE(sure.n == 0 || sure.percent() >= 90) << trace.run << " rank " << trace.rank;
    }
}

double mean(const std::vector<run_value> &values)
{
    double sum = 0;
    for (const run_value &value : values)
        sum += value.percent;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/* The figures asked for, where the whole set of recordings is at hand. */
TEST(FullSetTest, ReachesTheFigures)
{
    const char *folder = std::getenv("ZC_TRACES");
    if (!folder)
        GTEST_SKIP() << "ZC_TRACES does not name a folder of traces";
    std::vector<subject> subjects;
    for (const trace &trace : load_traces(folder))
        subjects.push_back(measure(trace, {"default", "default-keyed", "last-sender"}));
    EXPECT_GE(mean(values_by_run(subjects, "default", figure::post_1, over_8k)), 95.8);
    EXPECT_GE(mean(values_by_run(subjects, "default", figure::post_10, over_8k)), 86.0);
    EXPECT_GE(mean(values_by_run(subjects, "default-keyed", figure::post_1, over_8k)), 92.3);
    EXPECT_GE(mean(values_by_run(subjects, "default-keyed", figure::post_10, over_8k)), 90.5);
    EXPECT_GE(mean(values_by_run(subjects, "default", figure::exact, over_8k)), 92.0);
    const auto ours = values_by_run(subjects, "default", figure::exact, over_8k);
    const auto last = values_by_run(subjects, "last-sender", figure::exact, over_8k);
    for (size_t i = 0; i < ours.size(); i++)
        EXPECT_GE(ours[i].percent, last[i].percent - 0.5) << ours[i].run;
    for (const subject &s : subjects) {
        const share sure = s.measurements.front().landing.calibration.back();
        EXPECT_TRUE(sure.n == 0 || sure.percent() >= 90) << s.run << " rank " << s.rank;
        for (const measurement &m : s.measurements) {
            if (m.predictor == "default" && s.run.starts_with("npb-lu")) {
                EXPECT_GE(value_of(m, figure::post_10, over_8k), 96.5) << s.run << " " << s.rank;
            }
        }
    }
}

} // namespace
