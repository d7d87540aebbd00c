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
    write(out, forecast_of(run), more...);
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

std::size_t count(const std::string &text, const std::string &what)
{
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        found++;
    return found;
}

TEST(ReportTest, SaysWhatIsNotInTheForecast)
{
    zct::run run = late_receiver();
    EXPECT_EQ(text_of(write_text, run, std::size_t{10}).find("not in the forecast"),
              std::string::npos);
    for (zct::rank_trace &rank : run.ranks)
        rank.unrecorded_calls = {{ZCT_UNRECORDED_PUT, 0, 3, 12 << 20, 2 * kMs},
                                 {ZCT_UNRECORDED_WINDOW, 1, 4, 0, 30 * kMs}};
    const std::string text = text_of(write_text, run, std::size_t{1});
    EXPECT_NE(text.find("24 MiB that went one-sided, and 64.0 ms"), std::string::npos) << text;
    EXPECT_NE(text.find("       8        0 B    60.0 ms  MPI_Win_*: receive"), std::string::npos)
        << text;
    EXPECT_NE(text.find("(and 1 more call sites"), std::string::npos) << text;
    const json said = json::parse(text_of(write_json, run));
    ASSERT_EQ(said["not_recorded"].size(), 2u);
    EXPECT_EQ(said["not_recorded"][0]["function"], "MPI_Put");
    EXPECT_EQ(said["not_recorded"][0]["calls"], 6);
    EXPECT_EQ(said["not_recorded"][0]["bytes"], 24 << 20);
    EXPECT_EQ(said["not_recorded"][0]["seconds"], 0.004);
}

/* That it is well-formed, and what a browser makes of it: tests/run forecast. */
TEST(ReportTest, ThePageShowsCallsHeldSendersAndTheForecast)
{
    zct::run run = late_receiver();
    run.program = "a<b & \"c\"\n";
    std::ostringstream out;
    const std::vector<message> messages = messages_of(run);
    write_html(out, run, messages, site_names(run), forecast_of(run));
    const std::string page = out.str();
    EXPECT_EQ(count(page, "<rect class=\"call\""), 6u);
    EXPECT_EQ(count(page, "<rect class=\"held\""), 1u);
    EXPECT_EQ(count(page, "<rect class=\"transfer\""), 1u);
    EXPECT_EQ(count(page, "<line class=\"late\""), 1u);
    EXPECT_NE(page.find("held for 50.000 ms: 4194304 bytes from rank 0"), std::string::npos);
    EXPECT_NE(page.find("<title>a&lt;b &amp; &quot;c&quot; </title>"), std::string::npos);
    EXPECT_NE(page.find("0.050 s earlier"), std::string::npos);
    EXPECT_EQ(page.find("src="), std::string::npos); /* nothing from elsewhere */
}

TEST(ReportTest, APageOfNoCallsIsAPage)
{
    zct::run run = late_receiver();
    for (zct::rank_trace &rank : run.ranks)
        rank.calls.clear();
    std::ostringstream out;
    const std::vector<message> messages = messages_of(run);
    write_html(out, run, messages, site_names(run), forecast_of(run));
    EXPECT_EQ(out.str().find("nan"), std::string::npos);
    EXPECT_NE(out.str().find("</html>"), std::string::npos);
}

} // namespace

} // namespace zc::forecast::test
