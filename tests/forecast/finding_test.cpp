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
    EXPECT_EQ(f.sites.begin()->second.messages, 2u);
    EXPECT_NE(f.sites.begin()->first.send.find("send"), std::string::npos);
    EXPECT_NE(f.sites.begin()->first.receive.find("receive"), std::string::npos);
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
    EXPECT_EQ(unexpected_memory(run, messages), (std::vector<std::uint64_t>{500, 3000}));
    const findings f = find(run, messages, site_names(run));
    EXPECT_EQ(f.most_unexpected_bytes, 3000u);
    EXPECT_EQ(f.most_unexpected_rank, 1);
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

} // namespace

} // namespace zc::forecast::test
