/* SPDX-License-Identifier: BSD-3-Clause */
#include "finding.h"

#include <gtest/gtest.h>

#include "made_up_run.h"
#include "network.h"
#include "site_names.h"

namespace zc::forecast::test {

namespace {

TEST(FindingTest, AddsUpByCallSiteAndInAll)
{
    made_up_run made(2);
    made.message(0, 1, 4 << 20, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.message(0, 1, 8, {90 * kMs, 90 * kMs, 91 * kMs, 80 * kMs, 80 * kMs, 92 * kMs});
    const zct::run run = made.end({100 * kMs, 100 * kMs});
    const std::vector<message> messages = messages_of(run);
    const findings f = find(run, messages, site_names(run));
    EXPECT_EQ(f.total.messages, 2u);
    EXPECT_EQ(f.total.late_receivers, 1u);
    EXPECT_EQ(f.total.late_receiver_bytes, 4u << 20);
    EXPECT_EQ(f.total.held_ns, 50 * kMs);
    EXPECT_EQ(f.total.transfer_wait_ns, 4 * kMs);
    EXPECT_EQ(f.total.unexpected, 1u);
    EXPECT_EQ(f.total.late_senders, 1u);
    EXPECT_EQ(f.total.late_sender_ns, 10 * kMs);
    ASSERT_EQ(f.sites.size(), 1u);
    EXPECT_EQ(f.sites[0].found.messages, 2u);
    EXPECT_NE(f.sites[0].where.send.find("send"), std::string::npos);
    EXPECT_NE(f.sites[0].where.receive.find("receive"), std::string::npos);
}

/* Three at once at rank 1, of which two are there together; one at rank 0. */
TEST(FindingTest, KnowsTheMostMemoryOfUnexpectedMessages)
{
    made_up_run made(2);
    made.message(0, 1, 1000, {10, 10, 11, 30, 30, 31});
    made.message(0, 1, 2000, {20, 20, 21, 40, 40, 41});
    made.message(0, 1, 4000, {50, 50, 51, 45, 45, 52}); /* not unexpected */
    made.message(1, 0, 500, {60, 60, 61, 70, 70, 71});
    const zct::run run = made.end({100, 100});
    const std::vector<message> messages = messages_of(run);
    const findings f = find(run, messages, site_names(run));
    EXPECT_EQ(f.total.most_unexpected_bytes, 3000u);
    EXPECT_EQ(f.total.most_unexpected_rank, 1);
}

/* Of one pair of call sites 3000 bytes lie at rank 1 from 20 to 30; of the other 2500 at rank 0,
 * and 2000 at rank 1 from 25 to 30. In all it is 5000 there. */
TEST(FindingTest, KnowsTheMostMemoryOfEachPairOfCallSites)
{
    made_up_run made(2);
    made.message(0, 1, 1000, {10, 10, 11, 30, 30, 31});
    made.message(0, 1, 2000, {20, 20, 21, 40, 40, 41});
    made.message(0, 1, 2000, {25, 25, 26, 30, 30, 31});
    made.move_to_other_sites(0, 1);
    made.message(1, 0, 2500, {60, 60, 61, 70, 70, 71});
    made.move_to_other_sites(1, 0);
    made.message(0, 1, 9000, {80, 80, 85, 75, 75, 85}); /* not unexpected */
    made.move_to_other_sites(0, 1);
    const zct::run run = made.end({100, 100});
    const std::vector<message> messages = messages_of(run);
    const findings f = find(run, messages, site_names(run));
    EXPECT_EQ(f.total.most_unexpected_bytes, 5000u);
    EXPECT_EQ(f.total.most_unexpected_rank, 1);
    ASSERT_EQ(f.sites.size(), 2u);
    EXPECT_NE(f.sites[0].where.send.find("other_send"), std::string::npos);
    EXPECT_EQ(f.sites[0].found.unexpected, 2u);
    EXPECT_EQ(f.sites[0].found.unexpected_bytes, 4500u);
    EXPECT_EQ(f.sites[0].found.most_unexpected_bytes, 2500u);
    EXPECT_EQ(f.sites[0].found.most_unexpected_rank, 0);
    EXPECT_EQ(f.sites[1].found.unexpected, 2u);
    EXPECT_EQ(f.sites[1].found.unexpected_bytes, 3000u);
    EXPECT_EQ(f.sites[1].found.most_unexpected_bytes, 3000u);
    EXPECT_EQ(f.sites[1].found.most_unexpected_rank, 1);
}

/* What leaves makes room for what comes at that moment. */
TEST(FindingTest, MessagesThatMeetAtOneMomentDoNotLieTogether)
{
    made_up_run made(2);
    made.message(0, 1, 1000, {20, 20, 21, 30, 30, 31});
    made.message(0, 1, 2000, {10, 10, 11, 20, 20, 22});
    const zct::run run = made.end({100, 100});
    EXPECT_EQ(find(run, messages_of(run), site_names(run)).total.most_unexpected_bytes, 2000u);
}

TEST(FindingTest, NothingUnexpectedLiesNowhere)
{
    made_up_run made(2);
    made.message(0, 1, 9000, {80, 80, 85, 75, 75, 85});
    const zct::run run = made.end({100, 100});
    const findings f = find(run, messages_of(run), site_names(run));
    EXPECT_EQ(f.sites.at(0).found.most_unexpected_bytes, 0u);
    EXPECT_EQ(f.sites.at(0).found.most_unexpected_rank, -1);
    EXPECT_EQ(f.sites.at(0).found.foreseen.asked, 0u);
}

/* One pair of call sites has one buffer, which is known from its third message on at the latest.
 * The other has a new one each time. Both are asked for all that come early, and small ones for
 * none. */
TEST(FindingTest, KnowsHowOftenEachPairOfCallSitesIsForeseen)
{
    constexpr int rounds = 40;
    made_up_run made(3);
    std::uint64_t scattered = 0x40000000;
    for (int i = 0; i < rounds; i++) {
        const std::int64_t at = 100 * kMs * (i + 1);
        made.message(0, 1, 1 << 20, {at, at, at + 60, at + 50, at + 50, at + 60});
        scattered = scattered * 6364136223846793005 + 0x100001;
        made.message(0, 2, 1 << 20, {at + 70, at + 70, at + 90, at + 80, at + 80, at + 90},
                     scattered);
        made.move_to_other_sites(0, 2);
        made.message(0, 1, 8, {at + 100, at + 100, at + 101, at + 110, at + 110, at + 111});
    }
    const zct::run &run = made.end({9000 * kMs, 9000 * kMs, 9000 * kMs});
    const prediction foreseen = prediction_of(run);
    const findings f = find(run, messages_of(run, foreseen), site_names(run));
    ASSERT_EQ(f.sites.size(), 2u);
    const predictability &other = f.sites[0].found.foreseen;
    const predictability &same = f.sites[1].found.foreseen;
    EXPECT_EQ(same.asked, 40u);
    EXPECT_GE(same.right, 37u);
    EXPECT_EQ(other.asked, 40u);
    EXPECT_EQ(other.right, 0u);
    for (const predictability *p : {&same, &other})
        EXPECT_EQ(p->right + p->wrong + p->unknown, p->asked);
    EXPECT_EQ(f.total.foreseen.right, same.right);
    EXPECT_EQ(f.total.foreseen.asked, foreseen.total.asked);
}

TEST(FindingTest, WhatCostsMostIsFirst)
{
    made_up_run made(2);
    made.message(0, 1, 4 << 20, {10 * kMs, 10 * kMs, 24 * kMs, 20 * kMs, 20 * kMs, 24 * kMs});
    made.move_to_other_sites(0, 1);
    made.message(0, 1, 4 << 20, {30 * kMs, 30 * kMs, 84 * kMs, 80 * kMs, 80 * kMs, 84 * kMs});
    const zct::run run = made.end({100 * kMs, 100 * kMs});
    const findings f = find(run, messages_of(run), site_names(run));
    EXPECT_EQ(f.by_cost(), (std::vector<std::size_t>{1, 0}));
    EXPECT_EQ(f.sites[0].found.cost_ns(), 14 * kMs);
    EXPECT_EQ(f.site_of, (std::vector<std::uint32_t>{0, 1}));
}

TEST(NetworkTest, IsMeasuredByTransfersThatBothWaitedFor)
{
    made_up_run made(2);
    for (int i = 0; i < 8; i++) {
        const std::int64_t at = 100 * kMs * (i + 1);
        made.message(0, 1, 4'000'000,
                     {at, at, at + 54 * kMs, at + 50 * kMs, at + 50 * kMs, at + 54 * kMs});
    }
    const zct::run &run = made.end({900 * kMs, 900 * kMs});
    const network n = measure_network(run, messages_of(run));
    EXPECT_EQ(n.remote.samples, 8u);
    EXPECT_NEAR(n.remote.usual, 1.0, 0.01); /* 4 MB in 4 ms */
    EXPECT_EQ(n.local.samples, 0u);
}

/* Both sides of all wait from their beginnings. 0 to 1 and back from 100 and 102 on, 0 to 1 again
 * when that has ended, and 2 to 1 meanwhile. */
TEST(NetworkTest, KnowsWhatWentBothWaysAtOnce)
{
    constexpr std::uint64_t bytes = 1 << 20;
    made_up_run made(3);
    const auto send = [&](std::int32_t from, std::int32_t to, std::int64_t begin,
                          std::int64_t end) {
        made.message(from, to, bytes, {begin, begin, end, begin, begin, end});
    };
    send(0, 1, 100 * kMs, 104 * kMs);
    send(1, 0, 102 * kMs, 108 * kMs);
    send(2, 1, 101 * kMs, 103 * kMs);
    send(0, 1, 108 * kMs, 112 * kMs);
    send(1, 0, 120 * kMs, 124 * kMs);
    const zct::run &run = made.end({200 * kMs, 200 * kMs, 200 * kMs});
    const std::vector<message> messages = messages_of(run);
    const network n = measure_network(run, messages);
    ASSERT_EQ(messages.size(), 5u);
    for (std::size_t i = 0; i < messages.size(); i++) {
        const bool crossed = messages[i].send.rank != 2 && messages[i].send.posted_ns < 105 * kMs;
        EXPECT_EQ(n.crossed[i], crossed) << i;
    }
}

} // namespace

} // namespace zc::forecast::test
