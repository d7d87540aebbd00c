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

/* Rank 0 is held twice, by 50 and by 30 ms, at different places, and ends the job: 80 ms are given
 * back. With the first pair alone it comes 50 ms earlier to where it is held for as long as before,
 * but for what the receiver gains: it has its 4 MiB by a copy in 544 us, and not in 4 ms. With the
 * second pair alone it is 30 ms. */
zct::run two_late_receivers()
{
    made_up_run made(2);
    made.message(0, 1, 4 << 20, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.message(0, 1, 4 << 20, {170 * kMs, 170 * kMs, 204 * kMs, 200 * kMs, 200 * kMs, 204 * kMs});
    made.move_to_other_sites(0, 1);
    made.message(0, 1, 1 << 20, {210 * kMs, 210 * kMs, 215 * kMs, 205 * kMs, 205 * kMs, 215 * kMs});
    return made.end({400 * kMs, 220 * kMs});
}

TEST(ReportTest, JsonHasTheMemoryPredictabilityAndGainOfEachPairOfCallSites)
{
    const json all = json::parse(text_of(write_json, two_late_receivers()));
    ASSERT_EQ(all["sites"].size(), 2u);
    const json &other = all["sites"][0];
    const json &first = all["sites"][1];
    EXPECT_EQ(first["unexpected"], json({{"messages", 1}, {"bytes", 4 << 20}}));
    for (const json *each : {&other, &first, &all["total"], &all})
        EXPECT_EQ((*each)["unexpected_memory"], json({{"bytes", 4 << 20}, {"rank", 1}}));
    EXPECT_EQ(first["foreseen"]["asked"], 1);
    EXPECT_EQ(first["foreseen"]["hit_rate"], 0.0); /* the first of all */
    EXPECT_EQ(other["foreseen"]["asked"], 1);
    EXPECT_EQ(all["total"]["foreseen"]["asked"], 2);
    EXPECT_EQ(all["foreseen"]["asked"], 2);
    EXPECT_NEAR(first["forecast"]["saved_seconds"].get<double>(), 0.003456, 1e-6);
    EXPECT_NEAR(first["forecast"]["saved_percent"].get<double>(), 0.864, 1e-3);
    EXPECT_NEAR(first["forecast"]["by_freed_senders_seconds"].get<double>(), 0, 1e-6);
    EXPECT_NEAR(first["forecast"]["by_landing_seconds"].get<double>(), 0.003456, 1e-6);
    EXPECT_NEAR(other["forecast"]["saved_seconds"].get<double>(), 0.030, 1e-6);
    EXPECT_NEAR(other["forecast"]["by_freed_senders_seconds"].get<double>(), 0.030, 1e-6);
    EXPECT_NEAR(other["forecast"]["by_landing_seconds"].get<double>(), 0, 1e-6);
    for (const json *each : {&first, &other}) {
        const json &gain = (*each)["forecast"];
        EXPECT_LE(gain["least_saved_seconds"], gain["saved_seconds"]);
        EXPECT_LE(gain["saved_seconds"], gain["most_saved_seconds"]);
    }
    EXPECT_NEAR(all["forecast"]["saved_seconds"].get<double>(), 0.080, 1e-6);
}

TEST(ReportTest, WithNothingAskedThereIsNoHitRate)
{
    made_up_run made(2);
    made.message(0, 1, 8, {90 * kMs, 90 * kMs, 91 * kMs, 80 * kMs, 80 * kMs, 92 * kMs});
    const zct::run run = made.end({100 * kMs, 100 * kMs});
    const json all = json::parse(text_of(write_json, run));
    EXPECT_TRUE(all["sites"][0]["foreseen"]["hit_rate"].is_null());
    EXPECT_EQ(all["sites"][0]["unexpected_memory"], json({{"bytes", 0}, {"rank", -1}}));
    EXPECT_TRUE(all["sites"][0]["forecast"].is_null()); /* nothing that ch4:zc could change */
}

TEST(ReportTest, TheTableHasTheMemoryPredictabilityAndGainOfEachPairOfCallSites)
{
    const std::string text = text_of(write_text, two_late_receivers(), std::size_t{10});
    EXPECT_NE(text.find("4096 KiB   4096 KiB      0 %  send (+0x1000) -> receive (+0x2000)"),
              std::string::npos)
        << text;
    EXPECT_NE(
        text.find("     3.5 ms   0.9 %  (3.1 ms to 3.9 ms; 0 us by held senders, 3.5 ms by data "
                  "that is there)  send (+0x1000) -> receive (+0x2000)"),
        std::string::npos)
        << text;
    EXPECT_NE(text.find("    30.0 ms   7.5 %  ("), std::string::npos) << text;
    const std::string one = text_of(write_text, two_late_receivers(), std::size_t{1});
    EXPECT_NE(one.find("     3.5 ms   0.9 %"), std::string::npos) << one;
    EXPECT_EQ(one.find("    30.0 ms   7.5 %"), std::string::npos) << one;
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

TEST(ReportTest, ThePageHasATableOfTheCallSites)
{
    const zct::run run = two_late_receivers();
    std::ostringstream out;
    const prediction foreseen = prediction_of(run);
    const std::vector<message> messages = messages_of(run, foreseen);
    write_html(out, run, messages, site_names(run), forecast_of(run));
    const std::string page = out.str();
    EXPECT_EQ(count(page, "<tr class=\"total\">"), 1u);
    EXPECT_EQ(count(page, "<tr class=\"site\">"), 2u);
    EXPECT_EQ(count(page, "<th>"), 18u);
    const auto cells_of = [&](const std::string &row) {
        const std::size_t at = page.find(row);
        return at == std::string::npos ? row : page.substr(at, page.find("</tr>", at) - at);
    };
    const std::string total = cells_of("<tr class=\"total\"><td>all</td>");
    const std::string first = cells_of("<tr class=\"site\"><td>send (+0x1000)</td>");
    EXPECT_EQ(count(total, "<td>"), 18u);
    EXPECT_EQ(count(first, "<td>"), 18u);
    EXPECT_NE(total.find("<td>4096 KiB (rank 1)</td><td>50 %</td>"), std::string::npos) << total;
    EXPECT_NE(first.find("<td>4096 KiB (rank 1)</td><td>0 %</td>"), std::string::npos) << first;
    EXPECT_NE(total.find("<td>80.0 ms (20.0 %)</td>"), std::string::npos) << total;
    EXPECT_NE(first.find("<td>3.5 ms (0.9 %)</td>"), std::string::npos) << first;
    EXPECT_NE(page.find("<td>30.0 ms (7.5 %)</td>"), std::string::npos);
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
