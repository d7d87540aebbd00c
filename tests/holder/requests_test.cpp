/* SPDX-License-Identifier: BSD-3-Clause */
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "door_requests.h"
#include "request_server.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

/** One that is asked, and those that ask it, in one loop. */
class RequestsTest : public testing::Test {
  protected:
    ~RequestsTest() override { std::filesystem::remove(path_); }
    /** Until it @happens. */
    void turn_until(const std::function<bool()> &happens)
    {
        const auto end = clock::now() + 30s;
        while (!happens()) {
            ASSERT_LT(clock::now(), end);
            loop_.turn(10);
        }
    }
    int ask(const nlohmann::json &what)
    {
        return doors_.ask(path_, what, 30s,
                          [this](const nlohmann::json &said) { said_.push_back(said); });
    }

    std::string path_ = testing::TempDir() + "requests-" + std::to_string(getpid()) + ".sock";
    loop loop_;
    std::vector<std::pair<int, nlohmann::json>> heard_;
    std::vector<int> gone_;
    request_server server_{loop_, path_,
                           [this](int client, const nlohmann::json &what) {
                               heard_.emplace_back(client, what);
                               what.value("alone", false); /* throws if that is none */
                           },
                           [this](int client) { gone_.push_back(client); }};
    door_requests doors_{loop_};
    std::vector<nlohmann::json> said_;
};

TEST_F(RequestsTest, LinesGoEitherWayBeforeTheAnswer)
{
    const int door = ask({{"do", "move"}});
    turn_until([&] { return heard_.size() == 1; });
    const int client = heard_[0].first;
    server_.say(client, {{"said", "ready"}});
    turn_until([&] { return said_.size() == 1; });
    EXPECT_EQ(said_[0].at("said"), "ready");
    EXPECT_TRUE(doors_.waits());
    doors_.tell(door, {{"do", "go"}});
    turn_until([&] { return heard_.size() == 2; });
    EXPECT_EQ(heard_[1].first, client);
    EXPECT_EQ(heard_[1].second.at("do"), "go");
    /* What comes together is told apart. */
    server_.say(client, {{"said", "more"}});
    server_.answer(client, {{"ok", true}});
    turn_until([&] { return said_.size() == 3; });
    EXPECT_EQ(said_[1].at("said"), "more");
    EXPECT_EQ(said_[2].at("ok"), true);
    EXPECT_FALSE(doors_.waits());
    loop_.turn(10);
    EXPECT_TRUE(gone_.empty()) << "it was answered";
}

TEST_F(RequestsTest, SaysThatWhoeverAsksHasGone)
{
    {
        const descriptor asker = send_request(path_, {{"do", "move"}});
        turn_until([&] { return heard_.size() == 1; });
    }
    turn_until([&] { return !gone_.empty(); });
    EXPECT_EQ(gone_, std::vector<int>{heard_[0].first});
    server_.say(gone_[0], {{"said", "ready"}});
    server_.answer(gone_[0], {{"ok", true}});
}

TEST_F(RequestsTest, WhatCannotBeReadIsAnsweredAndWhoeverHasAskedIsGone)
{
    const int door = ask({{"do", "move"}});
    turn_until([&] { return heard_.size() == 1; });
    doors_.tell(door, {{"do", "go"}, {"alone", "yes"}});
    turn_until([&] { return said_.size() == 1; });
    EXPECT_EQ(said_[0].at("ok"), false);
    EXPECT_EQ(gone_, std::vector<int>{heard_[0].first});
}

TEST_F(RequestsTest, WhatIsNoRequestIsNotAnswered)
{
    const descriptor asker = send_request(path_, "no object");
    turn_until([&] { return gone_.size() == 1; });
    EXPECT_TRUE(heard_.empty());
}

} // namespace
} // namespace zc::holder
