/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "forecast.h"
#include "made_up_run.h"

namespace zc::forecast::test {

namespace {

using nlohmann::json;

zct::run late_receiver()
{
    made_up_run made(2);
    made.message(0, 1, 4 << 20, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    return made.end({164 * kMs, 84 * kMs});
}

template <typename... More>
std::string text_of(void (*write)(std::ostream &, const forecast &, More...), const zct::run &run,
                    More... more)
{
    std::ostringstream out;
    write(out, make_forecast(run, messages_of(run), site_names(run)), more...);
    return out.str();
}

TEST(ReportTest, TheTableNamesSitesAndTheForecast)
{
    const std::string text = text_of(write_text, late_receiver(), std::size_t{10});
    EXPECT_NE(text.find("senders held 50.0 ms"), std::string::npos) << text;
    EXPECT_NE(
        text.find("forecast, by replay of all ranks with ch4:zc: 50.0 ms of 164.0 ms (30.5 %)"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("send (+0x1000) -> receive (+0x2000)"), std::string::npos) << text;
}

TEST(ReportTest, WithoutAForecastItSaysWhy)
{
    zct::run run = late_receiver();
    run.ranks[0].complete = false;
    EXPECT_NE(text_of(write_text, run, std::size_t{10}).find("forecast: none: rank 0"),
              std::string::npos);
    const json all = json::parse(text_of(write_json, run));
    EXPECT_TRUE(all["forecast"].is_null());
    EXPECT_TRUE(all["no_forecast"].is_string());
}

TEST(ReportTest, JsonHasTheSameNumbers)
{
    const json all = json::parse(text_of(write_json, late_receiver()));
    EXPECT_NEAR(all["forecast"]["saved_seconds"].get<double>(), 0.05, 1e-6);
    EXPECT_EQ(all["forecast"]["ranks"].size(), 2u);
    EXPECT_NEAR(all["total"]["late_receivers"]["held_seconds"].get<double>(), 0.05, 1e-9);
    EXPECT_EQ(all["sites"].size(), 1u);
    EXPECT_TRUE(all["no_forecast"].is_null());
}

TEST(ReportTest, TraceEventsHaveCallsHeldSendersAndArrows)
{
    const zct::run run = late_receiver();
    std::ostringstream out;
    write_trace_events(out, run, messages_of(run), site_names(run));
    const json all = json::parse(out.str());
    int calls = 0;
    int held = 0;
    int arrows = 0;
    for (const json &event : all["traceEvents"]) {
        calls += event["ph"] == "X" && event["cat"] == "call";
        arrows += event["ph"] == "s" || event["ph"] == "f";
        if (event["ph"] == "X" && event["cat"] == "late receiver") {
            held++;
            EXPECT_EQ(event["pid"], 0);
            EXPECT_NEAR(event["ts"].get<double>(), 10'000, 0.01); /* microseconds */
            EXPECT_NEAR(event["dur"].get<double>(), 50'000, 0.01);
        }
    }
    EXPECT_EQ(calls, 6); /* of each rank MPI_Init, MPI_Finalize and one more */
    EXPECT_EQ(held, 1);
    EXPECT_EQ(arrows, 2);
}

} // namespace

} // namespace zc::forecast::test
