/* SPDX-License-Identifier: BSD-3-Clause */
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "dispatched.h"
#include "found_agent.h"

namespace zc::agent {
namespace {

using nlohmann::json;

json whole()
{
    return {{"version", 1},   {"directory", "/tmp/z"},  {"agents", 4},        {"host", "nodeB"},
            {"mode", "move"}, {"seeds", {"tcp://a:1"}}, {"log_level", "warn"}};
}

TEST(AgentDispatchedTest, AnOrderIsAConfiguration)
{
    json given = whole();
    given["config"] = "[decision]\nsettle = 2\n[agent]\nmode = \"observe\"\nhost = \"x\"\n";
    given["sockets"] = "/run/s";
    const dispatch_order order = parse_order(given.dump());
    EXPECT_EQ(order.agents, 4u);
    EXPECT_EQ(order.directory, "/tmp/z");
    EXPECT_FALSE(order.keys);
    EXPECT_EQ(order.c.logic.act, mode::move);
    EXPECT_EQ(order.c.logic.settle, 2 * kSecond);
    EXPECT_EQ(order.c.listen, "tcp://*:*");
    EXPECT_EQ(order.c.advertise, "nodeB");
    EXPECT_EQ(order.c.logic.seeds, std::vector<std::string>{"tcp://a:1"});
    EXPECT_EQ(order.c.log_level, "warn");
    EXPECT_EQ(order.c.state_file, "/tmp/z/state.json");
    EXPECT_EQ(order.c.status_socket, "/tmp/z/zcmd.sock");
    EXPECT_EQ(order.c.profile_directory, "/tmp/z/ranks");
    EXPECT_EQ(order.c.socket_directory, "/run/s");
}

TEST(AgentDispatchedTest, KeysComeFromTheFirstAgent)
{
    json given = whole();
    given["public"] = "P";
    given["secret"] = "S";
    given["config"] = "[agent]\nlisten = \"tcp://*:7000\"\n";
    const dispatch_order order = parse_order(given.dump());
    ASSERT_TRUE(order.keys);
    EXPECT_EQ(order.keys->public_key, "P");
    EXPECT_EQ(order.keys->secret_key, "S");
    EXPECT_EQ(order.c.listen, "tcp://*:7000");
}

TEST(AgentDispatchedTest, AnAgentIsLookedForWhereItsUserHasIt)
{
    const auto found =
        parse_search(json{{"version", 1},
                          {"find", true},
                          {"sockets", "/run/s"},
                          {"config", "[agent]\nkey_file = \"/k\"\n[status]\nsocket = \"/s\"\n"}}
                         .dump());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->c.key_file, "/k");
    EXPECT_EQ(found->c.status_socket, "/s");
    EXPECT_EQ(found->sockets, "/run/s");
    EXPECT_FALSE(parse_search(whole().dump()));
    EXPECT_THROW(parse_search("{\"version\":2,\"find\":true}"), dispatch_error);
}

TEST(AgentDispatchedTest, AnAgentThatNothingIsSaidOfHasTheFileThatZcmdTakesByItself)
{
    const char *before = std::getenv("HOME");
    const std::string home_before = before == nullptr ? "" : before;
    char home[] = "/tmp/zchomeXXXXXX";
    ASSERT_NE(mkdtemp(home), nullptr);
    setenv("HOME", home, 1);
    const json order = {{"version", 1}, {"find", true}};
    EXPECT_EQ(parse_search(order.dump())->c.key_file, "");
    std::filesystem::create_directories(std::string(home) + "/.config/zc");
    std::ofstream(default_config_file())
        << "[agent]\nkey_file = \"/k\"\n[status]\nsocket = \"/s\"\n"
           "[jobs]\nprofile_directory = \"/p\"\n";
    const auto found = parse_search(order.dump());
    json with_own = order;
    with_own["config"] = "";
    EXPECT_EQ(parse_search(with_own.dump())->c.key_file, "");
    setenv("HOME", home_before.c_str(), 1);
    std::filesystem::remove_all(home);
    EXPECT_EQ(found->c.key_file, "/k");
    EXPECT_EQ(found->c.status_socket, "/s");
    EXPECT_EQ(found->c.profile_directory, "/p");
}

TEST(AgentDispatchedTest, AnAgentIsLookedForInEachPlaceThatIsUsual)
{
    const char *before = std::getenv("XDG_RUNTIME_DIR");
    const std::string kept = before == nullptr ? "" : before;
    unsetenv("XDG_RUNTIME_DIR");
    config c;
    const std::vector<config> usual = may_have(c);
    c.profile_directory = "/p";
    const std::vector<config> with_profiles = may_have(c);
    c.status_socket = "/s";
    const std::vector<config> with_socket = may_have(c);
    if (before != nullptr)
        setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
    const std::string uid = std::to_string(geteuid());
    ASSERT_EQ(usual.size(), 2u);
    EXPECT_EQ(usual[0].status_socket, "/tmp/zcm-" + uid + "/zcmd.sock");
    EXPECT_EQ(usual[0].profile_directory, "/tmp/zcm-" + uid + "/ranks");
    EXPECT_EQ(usual[1].status_socket, "/run/user/" + uid + "/zcm/zcmd.sock");
    EXPECT_EQ(usual[1].profile_directory, "/run/user/" + uid + "/zcm/ranks");
    ASSERT_EQ(with_profiles.size(), 2u);
    EXPECT_EQ(with_profiles[1].profile_directory, "/p");
    ASSERT_EQ(with_socket.size(), 1u);
    EXPECT_EQ(with_socket[0].status_socket, "/s");
}

TEST(AgentDispatchedTest, RanksOfAJobAreWhereAnAgentThatWasFoundReadsThem)
{
    json given = whole();
    given["profiles"] = "/run/zcm/ranks";
    EXPECT_EQ(parse_order(given.dump()).c.profile_directory, "/run/zcm/ranks");
}

TEST(AgentDispatchedTest, NoneIsFoundWhereNoneListens)
{
    config c;
    c.status_socket = "/nonexistent/zcmd.sock";
    EXPECT_FALSE(found_agent::find(c));
}

/** Listens at a status socket as an agent does, and knows the agents at tcp://a:1 and tcp://b:1. */
class answers_as_agent {
  public:
    explicit answers_as_agent(const std::string &path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0))
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr *>(&address), sizeof address), 0) << path;
        EXPECT_EQ(listen(fd_, 8), 0);
        thread_ = std::thread([this] { serve(); });
    }
    ~answers_as_agent()
    {
        is_late = false;
        shutdown(fd_, SHUT_RDWR);
        thread_.join();
        close(fd_);
    }
    answers_as_agent(const answers_as_agent &) = delete;
    answers_as_agent &operator=(const answers_as_agent &) = delete;

    std::atomic<bool> is_late = false; /* no answer before it is false again */

  private:
    void serve() const
    {
        const json page = {{"mode", "move"},
                           {"nodes",
                            {{{"self", true}, {"state", "alive"}, {"address", "tcp://a:1"}},
                             {{"self", false}, {"state", "alive"}, {"address", "tcp://b:1"}},
                             {{"self", false}, {"state", "dead"}, {"address", "tcp://c:1"}}}}};
        const std::string answer = "HTTP/1.0 200 OK\r\n\r\n" + page.dump();
        for (int one; (one = accept(fd_, nullptr, nullptr)) >= 0; close(one)) {
            char asked[512];
            EXPECT_GT(recv(one, asked, sizeof asked, 0), 0);
            while (is_late)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            send(one, answer.data(), answer.size(), MSG_NOSIGNAL);
        }
    }

    int fd_;
    std::thread thread_;
};

class AgentFoundTest : public testing::Test {
  protected:
    AgentFoundTest()
    {
        char name[] = "/tmp/zcfoundXXXXXX";
        directory_ = mkdtemp(name);
        c_.key_file = directory_ + "/key";
        c_.status_socket = directory_ + "/zcmd.sock";
        write_keys(c_.key_file, make_keys());
    }
    ~AgentFoundTest() override { std::filesystem::remove_all(directory_); }

    std::string directory_;
    config c_;
    const std::vector<std::string> both_ = {"tcp://a:1", "tcp://b:1", "tcp://c:1"};
};

TEST_F(AgentFoundTest, AnAnswerThatComesLateIsNotItsEnd)
{
    std::optional<answers_as_agent> agent(c_.status_socket);
    auto found = found_agent::find(c_, {std::chrono::milliseconds(100), std::chrono::hours(1)});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->address(), "tcp://a:1");
    std::optional<std::size_t> alive;
    while (!(alive = found->alive_of(both_))) /* it may be late by itself */
        ;
    EXPECT_EQ(*alive, 2u);
    agent->is_late = true;
    EXPECT_EQ(found->alive_of(both_), std::nullopt);
    agent->is_late = false;
    while (!found->alive_of(both_)) /* it is still at the question before */
        ;
    agent.reset();
    EXPECT_THROW(found->alive_of(both_), found_agent_error);
}

TEST_F(AgentFoundTest, OneThatIsSilentForLongIsTakenForDead)
{
    answers_as_agent agent(c_.status_socket);
    auto found = found_agent::find(c_, {std::chrono::milliseconds(100), std::chrono::seconds(1)});
    ASSERT_TRUE(found);
    agent.is_late = true;
    EXPECT_EQ(found->alive_of(both_), std::nullopt);
    const auto ask_on = [&] {
        for (int i = 0; i < 100; i++)
            found->alive_of(both_);
    };
    EXPECT_THROW(ask_on(), found_agent_error);
}

TEST(AgentDispatchedTest, WhatIsNoOrderIsRefused)
{
    EXPECT_THROW(parse_order(""), dispatch_error);
    EXPECT_THROW(parse_order("[1]"), dispatch_error);
    for (const char *needed : {"version", "directory", "agents", "host", "seeds"}) {
        json given = whole();
        given.erase(needed);
        EXPECT_THROW(parse_order(given.dump()), dispatch_error) << needed;
    }
    const std::pair<const char *, json> wrong[] = {
        {"version", 2},  {"directory", "tmp"}, {"directory", ""}, {"agents", 0},
        {"agents", "x"}, {"mode", "often"},    {"seeds", {1, 2}}};
    for (const auto &[key, value] : wrong) {
        json given = whole();
        given[key] = value;
        EXPECT_THROW(parse_order(given.dump()), dispatch_error) << key << value;
    }
    json given = whole();
    given["config"] = "[decision]\nsetle = 2\n";
    EXPECT_THROW(parse_order(given.dump()), config_error);
    given = whole();
    given["public"] = "P";
    given["secret"] = 1;
    EXPECT_THROW(parse_order(given.dump()), dispatch_error);
}

} // namespace
} // namespace zc::agent
