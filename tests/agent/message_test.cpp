/* SPDX-License-Identifier: BSD-3-Clause */
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "samples.h"

namespace zc::agent {
namespace {

using test::random_message;

std::string sample()
{
    message m{5, 6, 7, msg::reserve{{5, 1}, 77, {{1, 5}, {2, 5}, {3, 6}}, 4096, 0}};
    return encode(m);
}

TEST(AgentMessageTest, EveryTypeComesBackAsItWas)
{
    random_source r(1);
    for (int i = 0; i < 5000; i++) {
        message m = random_message(r);
        message back;
        ASSERT_EQ(decode(encode(m), back), flaw::none) << message_name(m.body);
        ASSERT_EQ(m, back) << message_name(m.body);
    }
}

TEST(AgentMessageTest, RefusesEveryTruncation)
{
    random_source r(2);
    for (int i = 0; i < 300; i++) {
        std::string bytes = encode(random_message(r));
        for (std::size_t length = 0; length < bytes.size(); length++) {
            message m;
            ASSERT_NE(decode(std::string_view(bytes).substr(0, length), m), flaw::none);
        }
    }
}

/* The header says how long the body is; a forger that mends it is caught by the body. */
TEST(AgentMessageTest, RefusesTruncationWithAMendedHeader)
{
    random_source r(3);
    for (int i = 0; i < 300; i++) {
        std::string bytes = encode(random_message(r));
        for (std::size_t length = kHeaderBytes; length < bytes.size(); length++) {
            std::string cut = bytes.substr(0, length);
            auto body = static_cast<std::uint32_t>(length - kHeaderBytes);
            std::memcpy(cut.data() + kHeaderBytes - 4, &body, 4);
            message m;
            flaw f = decode(cut, m);
            ASSERT_TRUE(f == flaw::truncated || f == flaw::bad_value) << flaw_name(f);
        }
    }
}

TEST(AgentMessageTest, RefusesMoreThanTheMessage)
{
    std::string bytes = sample() + "x";
    message m;
    EXPECT_EQ(decode(bytes, m), flaw::bad_length);
    auto body = static_cast<std::uint32_t>(bytes.size() - kHeaderBytes);
    std::memcpy(bytes.data() + kHeaderBytes - 4, &body, 4);
    EXPECT_EQ(decode(bytes, m), flaw::trailing);
}

TEST(AgentMessageTest, RefusesOversizedMessages)
{
    message m;
    std::string bytes(kMaxMessage + 1, '\0');
    std::string good = sample();
    std::memcpy(bytes.data(), good.data(), kHeaderBytes);
    EXPECT_EQ(decode(bytes, m), flaw::too_long);
    EXPECT_EQ(decode(std::string(kMaxProbe + 1, '\0'), m), flaw::too_long);
}

TEST(AgentMessageTest, RefusesAnotherMagicVersionOrType)
{
    message m;
    std::string bytes = sample();
    bytes[0] ^= 1;
    EXPECT_EQ(decode(bytes, m), flaw::bad_magic);
    bytes = sample();
    bytes[4]++;
    EXPECT_EQ(decode(bytes, m), flaw::bad_version);
    bytes = sample();
    bytes[6] = 100;
    EXPECT_EQ(decode(bytes, m), flaw::bad_type);
}

TEST(AgentMessageTest, RefusesNobodyAsSender)
{
    message back;
    EXPECT_EQ(decode(encode({kNoNode, 1, 1, msg::leave{}}), back), flaw::bad_value);
    EXPECT_EQ(decode(encode({1, 0, 1, msg::leave{}}), back), flaw::bad_value);
    EXPECT_EQ(decode(encode({1, 1, 0, msg::leave{}}), back), flaw::bad_value);
}

TEST(AgentMessageTest, RefusesNumbersThatCannotBe)
{
    message back;
    member odd;
    odd.id = 4;
    odd.load.demand = NAN;
    EXPECT_EQ(decode(encode({1, 1, 1, msg::nudge{odd}}), back), flaw::bad_value);
    odd.load.demand = -1;
    EXPECT_EQ(decode(encode({1, 1, 1, msg::nudge{odd}}), back), flaw::bad_value);
    odd.load.demand = INFINITY;
    EXPECT_EQ(decode(encode({1, 1, 1, msg::nudge{odd}}), back), flaw::bad_value);
}

TEST(AgentMessageTest, RefusesControlCharactersInTexts)
{
    message back;
    msg::lent refusal{{1, 1}, false, 0, "\x1b[31mred"};
    EXPECT_EQ(decode(encode({1, 1, 1, refusal}), back), flaw::bad_value);
}

TEST(AgentMessageTest, RefusesARequestForNoRanks)
{
    message back;
    EXPECT_EQ(decode(encode({1, 1, 1, msg::lend{{1, 1}, 1, 1, 2, {}}}), back), flaw::bad_value);
}

TEST(AgentMessageTest, LeavesTheOutputAloneWhenItRefuses)
{
    message m{1, 2, 3, msg::leave{}};
    message before = m;
    std::string bytes = sample();
    bytes.pop_back();
    EXPECT_NE(decode(bytes, m), flaw::none);
    EXPECT_EQ(m, before);
}

TEST(AgentMessageTest, TheTrafficOfRanksFitsAMessage)
{
    msg::past most{{1, 1}, 5, std::vector<msg::sent>(kMaxPast + 1, {1, 2, 3, 4})};
    const std::string bytes = encode({1, 1, 1, most});
    EXPECT_LE(bytes.size(), kMaxMessage);
    message back;
    ASSERT_EQ(decode(bytes, back), flaw::none);
    EXPECT_EQ(std::get<msg::past>(back.body).events.size(), kMaxPast);
    EXPECT_EQ(decode(encode({1, 1, 1, msg::past{{1, 1}, 5, {}}}), back), flaw::bad_value);
    EXPECT_LE(encode({1, 1, 1, msg::traffic{5, 6, most.events}}).size(), kMaxMessage);
    EXPECT_EQ(decode(encode({1, 1, 1, msg::traffic{5, 6, {}}}), back), flaw::bad_value);
}

/* An older agent knows nothing of it, and ranks below zc-hold are asked for by their own node's. */
TEST(AgentMessageTest, WhatBecameOfEachRankStaysOnItsNode)
{
    msg::outcome o{{1, 1}, 5, msg::verdict::moved, 1, 0, {}, ""};
    const std::string bytes = encode({1, 1, 1, o});
    o.each = {{3, msg::verdict::moved, ""}, {4, msg::verdict::refused, "a window"}};
    EXPECT_EQ(encode({1, 1, 1, o}), bytes);
}

/* As an older agent does with a type that it does not know. */
TEST(AgentMessageTest, RefusesTypesItDoesNotKnow)
{
    std::string bytes = encode({1, 1, 1, msg::leave{}});
    bytes[6] = static_cast<char>(std::variant_size_v<message_body>);
    message back;
    EXPECT_EQ(decode(bytes, back), flaw::bad_type);
}

/* What encode() is given too much of it cuts, so that nothing we send is refused. */
TEST(AgentMessageTest, CutsWhatIsTooLong)
{
    msg::lent long_reason{{1, 1}, false, 0, std::string(10'000, 'a')};
    message back;
    ASSERT_EQ(decode(encode({1, 1, 1, long_reason}), back), flaw::none);
    EXPECT_EQ(std::get<msg::lent>(back.body).reason.size(), kMaxText);
}

} // namespace
} // namespace zc::agent
