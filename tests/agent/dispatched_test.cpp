/* SPDX-License-Identifier: BSD-3-Clause */
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
