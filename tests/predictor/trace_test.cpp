/* SPDX-License-Identifier: BSD-3-Clause */

/* Accuracy on real receive streams. The streams are fixed and the engine is
 * deterministic, so the floors are the measured values, rounded down. */
#include <algorithm>
#include <cstdio>
#include <string>

#include "engine.h"

using namespace zcp_test;

namespace {

struct traced {
    zcp_receive_t receive;
    uint64_t posted_us;
    uint64_t sent_us;

    bool large() const { return receive.envelope.bytes > 8192; }
    bool unexpected() const { return sent_us < posted_us; }
};

std::vector<traced> load(const std::string &name)
{
    const std::string path = std::string(ZCP_TEST_DATA) + "/" + name + ".csv";
    std::vector<traced> rows;
    std::FILE *file = std::fopen(path.c_str(), "r");
    EXPECT_NE(nullptr, file) << path;
    if (!file)
        return rows;
    EXPECT_EQ(0, std::fscanf(file, "%*[^\n]")); /* heading */
    traced row;
    zcp_envelope_t &e = row.receive.envelope;
    while (std::fscanf(file, "%u,%d,%d,%lu,%lx,%lu,%lu", &e.comm, &e.source, &e.tag, &e.bytes,
                       &row.receive.addr, &row.posted_us, &row.sent_us) == 7)
        rows.push_back(row);
    std::fclose(file);
    EXPECT_GT(rows.size(), 500u);
    return rows;
}

/** What a sample of the paper holds. */
bool same_sample(const zcp_receive_t &a, const zcp_receive_t &b)
{
    return a.envelope.source == b.envelope.source && a.envelope.bytes == b.envelope.bytes &&
           a.addr == b.addr;
}

double percent(size_t part, size_t whole)
{
    return whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/** Percentage of large receives foretold @h ahead, in posting order. */
double foretold(zcp_kind_t kind, const std::vector<traced> &rows, uint32_t h)
{
    engine engine(kind);
    std::vector<std::optional<zcp_receive_t>> expected(rows.size() + h);
    size_t right = 0;
    size_t large = 0;
    for (size_t i = 0; i < rows.size(); i++) {
        const auto coming = engine.next(h);
        if (coming.size() == h)
            expected[i + h - 1] = coming.back();
        large += rows[i].large();
        right += rows[i].large() && expected[i] && same_sample(*expected[i], rows[i].receive);
        engine.receive(rows[i].receive);
    }
    return percent(right, large);
}

/** Percentage of large unexpected messages whose address was known when they were sent. */
double landed(zcp_kind_t kind, const std::vector<traced> &rows)
{
    struct event {
        uint64_t time_us;
        size_t row;
        bool arrival;
    };
    std::vector<event> events;
    for (size_t i = 0; i < rows.size(); i++) {
        if (rows[i].unexpected())
            events.push_back({rows[i].sent_us, i, true});
        events.push_back({rows[i].posted_us, i, false});
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const event &a, const event &b) { return a.time_us < b.time_us; });

    engine engine(kind);
    std::vector<zcp_landing_t> landings(rows.size());
    size_t right = 0;
    size_t large = 0;
    for (const event &event : events) {
        const traced &row = rows[event.row];
        zcp_landing_t &landing = landings[event.row];
        if (event.arrival) {
            landing = engine.arrive(row.receive.envelope);
            large += row.large();
            right += row.large() && landing.ahead != 0 && landing.addr == row.receive.addr;
        } else if (row.unexpected()) {
            engine.settle(landing, row.receive.addr);
        } else {
            engine.receive(row.receive);
        }
    }
    return percent(right, large);
}

struct floor_of {
    const char *trace;
    zcp_kind_t kind;
    double next_1;
    double next_10;
    double landing;
};

void PrintTo(const floor_of &f, std::ostream *out)
{
    *out << f.trace << " " << zcp_kind_name(f.kind);
}

std::string trace_label(const testing::TestParamInfo<floor_of> &info)
{
    std::string name = std::string(info.param.trace) + "_" + zcp_kind_name(info.param.kind);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

class TraceTest : public testing::TestWithParam<floor_of> {};

INSTANTIATE_TEST_SUITE_P(Floors, TraceTest,
                         testing::Values(floor_of{"bt-a-4", ZCP_DEFAULT, 99.3, 98.8, 100.0},
                                         floor_of{"bt-a-4", ZCP_GRAPH, 99.2, 98.7, 99.5},
                                         floor_of{"bt-a-4", ZCP_DPD, 86.5, 86.1, 90.1},
                                         floor_of{"cg-a-8", ZCP_DEFAULT, 98.5, 96.2, 98.7},
                                         floor_of{"cg-a-8", ZCP_GRAPH, 97.9, 93.6, 97.0},
                                         floor_of{"cg-a-8", ZCP_DPD, 78.0, 77.5, 83.7},
                                         floor_of{"lu-a-4", ZCP_DEFAULT, 90.3, 84.6, 96.7},
                                         floor_of{"lu-a-4", ZCP_GRAPH, 42.3, 0.0, 67.7},
                                         floor_of{"lu-a-4", ZCP_DPD, 73.0, 73.0, 67.7},
                                         floor_of{"mg-a-8", ZCP_DEFAULT, 90.9, 67.8, 96.4},
                                         floor_of{"mg-a-8", ZCP_GRAPH, 79.9, 10.6, 57.1},
                                         floor_of{"mg-a-8", ZCP_DPD, 25.7, 22.3, 30.3},
                                         floor_of{"sp-a-4", ZCP_DEFAULT, 99.3, 98.8, 99.5},
                                         floor_of{"sp-a-4", ZCP_GRAPH, 99.2, 98.7, 99.2},
                                         floor_of{"sp-a-4", ZCP_DPD, 86.5, 86.1, 84.8}),
                         trace_label);

TEST_P(TraceTest, IsAsAccurateAsMeasured)
{
    const auto rows = load(GetParam().trace);
    const double next_1 = foretold(GetParam().kind, rows, 1);
    const double next_10 = foretold(GetParam().kind, rows, 10);
    const double landing = landed(GetParam().kind, rows);
    RecordProperty("next_1", std::to_string(next_1));
    RecordProperty("next_10", std::to_string(next_10));
    RecordProperty("landing", std::to_string(landing));
    EXPECT_GE(next_1, GetParam().next_1);
    EXPECT_GE(next_10, GetParam().next_10);
    EXPECT_GE(landing, GetParam().landing);
}

TEST(TraceLandingTest, DefaultIsNoWorseThanAnyOtherKind)
{
    for (const char *trace : {"bt-a-4", "sp-a-4", "cg-a-8", "lu-a-4", "mg-a-8"}) {
        const auto rows = load(trace);
        const double best = landed(ZCP_DEFAULT, rows);
        for (const zcp_kind_t kind : {ZCP_GRAPH, ZCP_DPD, ZCP_LAST, ZCP_LAST_SIZE, ZCP_OFFSET})
            EXPECT_GE(best, landed(kind, rows)) << trace << " " << zcp_kind_name(kind);
    }
}

} // namespace
