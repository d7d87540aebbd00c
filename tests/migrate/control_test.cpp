/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <sys/stat.h>
#include <thread>

#include "control_client.h"
#include "control_server.h"
#include "error.h"
#include "scratch_directory.h"

namespace zc::migrate {
namespace {

using control::ask_job;
using control::jobs_in;

const char *const kMove = R"({"command":"move","moves":[{"rank":1,"host":"a"}]})";

class ControlTest : public testing::Test {
  protected:
    std::string ask(const std::string &line) { return ask_job(place_, "job", line, 60); }
    /** A request that waits too briefly for @server to take it. Returns the answer to the one that
     * it has taken, about which it has done @then. */
    std::string ask_until_taken(
        control_server &server, const std::function<void()> &then = [] {})
    {
        std::atomic<bool> taken = false;
        std::string answer;
        std::thread asker([&] {
            do
                answer = ask(kMove);
            while (!taken);
        });
        while (!server.take())
            std::this_thread::yield();
        taken = true;
        then();
        asker.join();
        return answer;
    }

    const scratch_directory scratch_;
    const std::string place_ = scratch_.path() + "/sockets";
    std::atomic<std::int64_t> safe_points_{7};
    std::atomic<int> rung_{0};
};

TEST_F(ControlTest, StatusIsAnsweredAtOnce)
{
    control_server server(
        place_, "job", 2, 60, 1, safe_points_, [](const request &) { return nullptr; },
        [&] { rung_++; });
    server.set_status(R"({"ok":true})", 1);
    EXPECT_EQ(ask(R"({"command":"status"})"), R"({"late_functions":0,"ok":true,"safe_points":7})");
    server.set_late_functions(3);
    EXPECT_EQ(ask(R"({"command":"status"})"), R"({"late_functions":3,"ok":true,"safe_points":7})");
    EXPECT_EQ(rung_, 0);
    const control_server agent(
        place_, "zcmd", 2, 60, 1, safe_points_, [](const request &) { return nullptr; }, [] {});
    EXPECT_EQ(jobs_in(place_), std::vector<std::string>{"job"}); /* an agent is no job */
}

TEST_F(ControlTest, ThereIsNoStatusBeforeTheFirst)
{
    control_server server(
        place_, "job", 2, 60, 1, safe_points_, [](const request &) { return nullptr; },
        [&] { rung_++; });
    const std::string answer = ask(R"({"command":"status"})");
    EXPECT_NE(answer.find("\"ok\":false"), std::string::npos) << answer;
    EXPECT_NE(answer.find("\"code\":" + std::to_string(EBUSY)), std::string::npos) << answer;
    EXPECT_NE(answer.find("not all ranks are ready yet"), std::string::npos) << answer;
}

TEST_F(ControlTest, OneRequestAtATime)
{
    control_server server(
        place_, "job", 2, 60, 1, safe_points_, [](const request &) { return nullptr; },
        [&] { rung_++; });
    std::string answer;
    std::thread asker([&] { answer = ask(kMove); });
    while (rung_ == 0)
        std::this_thread::yield();
    EXPECT_NE(ask(kMove).find("another request is under way"), std::string::npos);
    const auto taken = server.take();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->wanted.moves[0].host, "a");
    EXPECT_FALSE(server.take());
    EXPECT_FALSE(server.submit(taken->wanted));
    server.finish(R"({"ok":true})");
    asker.join();
    EXPECT_EQ(answer, R"({"ok":true})");
    EXPECT_TRUE(server.submit(taken->wanted));
}

TEST_F(ControlTest, AClosedDoorSaysWhy)
{
    control_server server(
        place_, "job", 2, 60, 1, safe_points_, [](const request &) { return nullptr; },
        [&] { rung_++; });
    server.close_door("too late");
    EXPECT_NE(ask(kMove).find("too late"), std::string::npos);
    EXPECT_EQ(rung_, 0);
}

TEST_F(ControlTest, ARequestIsExaminedFirst)
{
    control_server server(
        place_, "job", 2, 60, 1, safe_points_,
        [](const request &wanted) -> std::shared_ptr<standby> {
            throw error(EHOSTUNREACH, wanted.moves[0].host + " is away");
        },
        [&] { rung_++; });
    EXPECT_NE(ask(kMove).find("a is away"), std::string::npos);
    EXPECT_EQ(rung_, 0);
    EXPECT_FALSE(server.take());
}

TEST_F(ControlTest, AMoveForAnotherEpochIsRefused)
{
    control_server server(
        place_, "job", 2, 60, 1, safe_points_, [](const request &) { return nullptr; },
        [&] { rung_++; });
    server.set_status("{}", 7);
    const std::string stale = R"({"command":"move","epoch":6,"moves":[{"rank":1,"host":"a"}]})";
    const std::string answer = ask(stale);
    EXPECT_NE(answer.find("\"code\":" + std::to_string(ESTALE)), std::string::npos) << answer;
    EXPECT_EQ(rung_, 0);
    std::string current = stale;
    current.replace(current.find(":6,"), 3, ":7,");
    std::thread asker([&] { EXPECT_EQ(ask(current), "{}"); });
    while (rung_ == 0)
        std::this_thread::yield();
    EXPECT_TRUE(server.take());
    server.finish("{}");
    asker.join();
}

TEST_F(ControlTest, ARequestThatNobodyTakesIsWithdrawn)
{
    control_server server(
        place_, "job", 2, 0.2, 1, safe_points_, [](const request &) { return nullptr; },
        [&] { rung_++; });
    const std::string answer = ask(kMove);
    EXPECT_NE(answer.find("\"code\":" + std::to_string(ETIMEDOUT)), std::string::npos) << answer;
    EXPECT_NE(answer.find("rank 0 did not come to a safe point"), std::string::npos) << answer;
    EXPECT_EQ(rung_, 1);
    EXPECT_FALSE(server.take());
}

TEST_F(ControlTest, ARequestTakenAndNotHeldIsAnsweredInTime)
{
    control_server server(
        place_, "job", 2, 0.2, 1, safe_points_, [](const request &) { return nullptr; },
        [&] { rung_++; });
    const std::string answer = ask_until_taken(server);
    EXPECT_NE(answer.find("\"code\":" + std::to_string(ETIMEDOUT)), std::string::npos) << answer;
    EXPECT_FALSE(server.hold()); /* too late */
    EXPECT_NE(ask(kMove).find("another request is under way"), std::string::npos);
    server.finish("{}");
    EXPECT_TRUE(server.submit(request::from_json(kMove)));
}

/** Rank 0 knows which rank is missing. */
TEST_F(ControlTest, RankZeroHasTheLastWordOnARequestThatItHasTaken)
{
    control_server server(
        place_, "job", 2, 0.2, 1, safe_points_, [](const request &) { return nullptr; },
        [&] { rung_++; });
    const std::string answer = ask_until_taken(server, [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(600));
        server.finish("rank 1 is missing");
    });
    EXPECT_EQ(answer, "rank 1 is missing");
}

TEST_F(ControlTest, ARequestThatIsHeldMayTakeItsTime)
{
    control_server server(
        place_, "job", 2, 0.2, 1, safe_points_, [](const request &) { return nullptr; },
        [&] { rung_++; });
    const std::string answer = ask_until_taken(server, [&] {
        EXPECT_TRUE(server.hold());
        std::this_thread::sleep_for(std::chrono::milliseconds(600));
        server.finish(R"({"ok":true})");
    });
    EXPECT_EQ(answer, R"({"ok":true})");
}

TEST_F(ControlTest, ASuccessorTakesTheNameOver)
{
    auto old = std::make_unique<control_server>(
        place_, "job", 2, 60, 1, safe_points_, [](const request &) { return nullptr; }, [] {});
    control_server fresh(
        place_, "job", 2, 60, 1, safe_points_, [](const request &) { return nullptr; }, [] {});
    fresh.set_status(R"({"fresh":1})", 1);
    old.reset(); /* must not take the new one's name away */
    EXPECT_NE(ask(R"({"command":"status"})").find("fresh"), std::string::npos);
}

TEST_F(ControlTest, OnlyTheOwnerGetsIn)
{
    control_server server(
        place_, "job", 2, 60, 1, safe_points_, [](const request &) { return nullptr; }, [] {});
    struct stat found;
    ASSERT_EQ(stat(place_.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0700u);
    ASSERT_EQ(stat(server.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u);
    ASSERT_EQ(chmod(place_.c_str(), 0755), 0);
    EXPECT_THROW(
        control_server(
            place_, "two", 2, 60, 1, safe_points_, [](const request &) { return nullptr; }, [] {}),
        error);
}

} // namespace
} // namespace zc::migrate
