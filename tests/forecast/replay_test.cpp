/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay.h"

#include <gtest/gtest.h>

#include <optional>

#include "forecast.h"
#include "made_up_run.h"

namespace zc::forecast::test {

namespace {

constexpr std::uint64_t kBytes = 4 << 20;
using times = std::vector<std::int64_t>;

/** The ends of the ranks with the recorded protocol, and with ch4:zc. */
struct outcome {
    times stock;
    times zc;
};

outcome play(const zct::run &run, const zc_model &model = likely_model(1))
{
    const std::vector<message> messages = messages_of(run);
    const timeline steps = timeline_of(run, messages);
    EXPECT_EQ(steps.unusable, "");
    const network network = measure_network(run, messages);
    const replay all(run, messages, steps, network);
    const auto stock = all.stock();
    const auto zc = all.with(model);
    EXPECT_TRUE(stock && zc);
    return {stock.value_or(times{}), zc.value_or(times{})};
}

/* 4 MiB are sent at 10 ms and received from 60 on, in 4 ms. Then the sender works for 100 ms,
 * the receiver for 20. */
const zct::run &late_receiver(made_up_run &made)
{
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    return made.end({164 * kMs, 84 * kMs});
}

TEST(ReplayTest, GivesTheRecordedTimesAgain)
{
    made_up_run made(2);
    const outcome o = play(late_receiver(made));
    EXPECT_EQ(o.stock, (times{164 * kMs, 84 * kMs}));
}

/* The sender goes on when its transfer is over: at 14 ms, 50 earlier. The receiver has
 * its data 145 us after it was posted, and not 4 ms. */
TEST(ReplayTest, ALateReceiverFreesItsSenderAndDoesNotWait)
{
    made_up_run made(2);
    const outcome o = play(late_receiver(made));
    ASSERT_EQ(o.zc.size(), 2u);
    EXPECT_EQ(o.zc[0], 114 * kMs);
    EXPECT_EQ(o.zc[1], 80 * kMs + 145'000);
}

/* Ranks 0 and 1 send to each other at 10 ms, and each waits for both until 20; then 0 sends to 2,
 * in 4 ms. That is the rate of the link: the messages that crossed took 10. They are there at 14 ms
 * if ch4:zc sends them apart, which is possible. What is likely keeps to what was seen. */
TEST(ReplayTest, MessagesOfBothWaysMayNotDelayEachOther)
{
    made_up_run made(3);
    const auto exchange = [&](std::int32_t from, std::int32_t to) {
        made.message(from, to, 4'000'000,
                     {10 * kMs, 10 * kMs, 20 * kMs, 9 * kMs, 10 * kMs, 20 * kMs});
    };
    exchange(0, 1);
    exchange(1, 0);
    for (int i = 0; i < 4; i++) {
        const std::int64_t at = (30 + 10 * i) * kMs;
        made.message(0, 2, 4'000'000,
                     {at, at, at + 4 * kMs, at - 5 * kMs, at - 5 * kMs, at + 4 * kMs});
    }
    const zct::run &run = made.end({100 * kMs, 100 * kMs, 100 * kMs});
    EXPECT_EQ(play(run).zc[1], 100 * kMs);
    EXPECT_NEAR(static_cast<double>(play(run, hopeful_model()).zc[1]), 94.0 * kMs, 0.1 * kMs);
    EXPECT_NEAR(static_cast<double>(play(run, hopeful_model()).zc[0]), 94.0 * kMs, 0.1 * kMs);
}

/* The second message is left as it was recorded: its sender is held from 114 ms on, since it comes
 * 50 earlier, to 200 as before. */
TEST(ReplayTest, OfSomeMessagesAlone)
{
    made_up_run made(2);
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.message(0, 1, kBytes, {164 * kMs, 164 * kMs, 204 * kMs, 200 * kMs, 200 * kMs, 204 * kMs});
    const zct::run &run = made.end({210 * kMs, 204 * kMs});
    const std::vector<message> messages = messages_of(run);
    const timeline steps = timeline_of(run, messages);
    const network network = measure_network(run, messages);
    const replay all(run, messages, steps, network);
    const auto end = [&](const std::vector<bool> &only) {
        const auto ends = all.with(likely_model(1), &only);
        return ends ? static_cast<double>(ends->at(0)) : -1;
    };
    EXPECT_NEAR(end({false, false}), 210.0 * kMs, 1);
    EXPECT_NEAR(end({true, false}), (210 - 3.855) * kMs,
                1); /* the receiver comes 4 ms - 145 us earlier */
    EXPECT_NEAR(end({false, true}), (210 - 36) * kMs, 1);
    EXPECT_NEAR(end({true, true}), (210 - 50 - 36) * kMs, 1);
}

/* The sender is told at 60 ms that its receive was posted, and no more waits for the transfer. */
TEST(ReplayTest, ASynchronousSenderWaitsForItsReceiver)
{
    made_up_run made(2);
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.make_synchronous(0);
    const outcome o = play(made.end({164 * kMs, 84 * kMs}));
    EXPECT_EQ(o.stock, (times{164 * kMs, 84 * kMs}));
    ASSERT_EQ(o.zc.size(), 2u);
    EXPECT_NEAR(static_cast<double>(o.zc[0]), 160.0 * kMs, 0.1 * kMs);
    EXPECT_EQ(o.zc[1], 80 * kMs + 145'000);
}

/* One that waited says nothing of the size from which the library holds other senders. */
TEST(ReplayTest, ASmallSynchronousSendIsHeldAlone)
{
    made_up_run made(2);
    made.message(0, 1, 8, {10 * kMs, 10 * kMs, 60 * kMs + 10'000, 60 * kMs, 60 * kMs, 60 * kMs});
    made.make_synchronous(0);
    made.message(0, 1, 1024, {70 * kMs, 70 * kMs, 71 * kMs, 69 * kMs, 69 * kMs, 71 * kMs});
    const zct::run &run = made.end({164 * kMs, 84 * kMs});
    const std::vector<message> messages = messages_of(run);
    const timeline steps = timeline_of(run, messages);
    const network network = measure_network(run, messages);
    EXPECT_FALSE(replay(run, messages, steps, network).holds(messages.at(1)));
    const outcome o = play(run);
    EXPECT_EQ(o.stock, (times{164 * kMs, 84 * kMs}));
    EXPECT_EQ(o.zc, o.stock);
}

TEST(ReplayTest, EachReasonAlone)
{
    made_up_run made(2);
    const zct::run &run = late_receiver(made);
    zc_model model = likely_model(1);
    model.lands = false;
    EXPECT_EQ(play(run, model).zc, (times{114 * kMs, 84 * kMs}));
    model.lands = true;
    model.frees_senders = false;
    EXPECT_EQ(play(run, model).zc, (times{164 * kMs, 80 * kMs + 145'000}));
}

TEST(ReplayTest, AWrongGuessCostsACopy)
{
    made_up_run made(2);
    const zct::run &run = late_receiver(made);
    EXPECT_GT(play(run, likely_model(0)).zc.at(1), play(run, likely_model(1)).zc.at(1));
}

/* The sum of the waits is 54 ms, but rank 0 is waited for by nothing: the job ends with rank 1. */
TEST(ReplayTest, TimeOffTheCriticalPathIsNoGain)
{
    made_up_run made(2);
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    const zct::run run = made.end({65 * kMs, 264 * kMs});
    const forecast f = forecast_of(run);
    EXPECT_EQ(f.no_forecast, "");
    /* The receiver's transfer less a copy (the first message is not foreseen), not the 50 ms. */
    EXPECT_NEAR(f.job.saved_s, 0.00346, 0.0001);
    EXPECT_NEAR(f.ranks.at(0).time.saved_s, 0.050, 0.0002);
    EXPECT_LE(f.job.least_saved_s, f.job.saved_s);
    EXPECT_GE(f.job.most_saved_s, f.job.saved_s);
}

/* A receiver that waits for a sender that was held by another: the delay goes on from rank to rank,
 * and is gone with it. Rank 1 is late by 50 ms; rank 2 waits for what rank 0 sends it afterwards.
 */
TEST(ReplayTest, AHeldSenderNoLongerDelaysOthers)
{
    made_up_run made(3);
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.message(0, 2, 8, {65 * kMs, 65 * kMs, 65 * kMs + 1000, 5 * kMs, 5 * kMs, 66 * kMs});
    const outcome o = play(made.end({66 * kMs, 65 * kMs, 100 * kMs}));
    EXPECT_EQ(o.stock, (times{66 * kMs, 65 * kMs, 100 * kMs}));
    EXPECT_EQ(o.zc[2], 50 * kMs);
}

TEST(ReplayTest, ABalancedExchangeGainsNothing)
{
    made_up_run made(2);
    for (int i = 0; i < 5; i++) {
        const std::int64_t at = 20 * kMs * (i + 1);
        made.message(0, 1, kBytes, {at, at, at + 4 * kMs, at - 1000, at - 1000, at + 4 * kMs});
    }
    const outcome o = play(made.end({200 * kMs, 200 * kMs}));
    EXPECT_EQ(o.stock, o.zc);
}

/* Both sides have posted it at 11 ms and compute until 60. */
TEST(ReplayTest, TransfersGoOnBehindWork)
{
    made_up_run made(2);
    made.message(0, 1, kBytes, {11 * kMs, 60 * kMs, 64 * kMs, 10 * kMs, 60 * kMs, 64 * kMs});
    const zct::run &run = made.end({70 * kMs, 70 * kMs});
    EXPECT_EQ(play(run).zc, (times{66 * kMs, 66 * kMs}));
    EXPECT_EQ(play(run, cautious_model(1)).zc, (times{70 * kMs, 70 * kMs}));
}

TEST(ReplayTest, ABarrierWaitsForTheLast)
{
    made_up_run made(3);
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.collective(ZCT_BARRIER, -1, {100 * kMs, 65 * kMs, 20 * kMs},
                    {101 * kMs, 101 * kMs, 101 * kMs});
    const outcome o = play(made.end({102 * kMs, 102 * kMs, 102 * kMs}));
    EXPECT_EQ(o.stock, times(3, 102 * kMs));
    /* Rank 0 is there 50 ms earlier, rank 1 at 61.1: all leave 1 ms after it,
     * and end after one more. */
    EXPECT_EQ(o.zc, times(3, 63 * kMs + 145'000));
}

/* Of four ranks, 2 is held by 3, which is late. With ch4:zc they come to the collective at 50 ms
 * and not at 100, and at 66.145 ms and not at 70; ranks 0 and 1 come at 20. Each goes on 1 ms after
 * the last that it waits for, and works for one more. */
TEST(ReplayTest, ACollectiveWaitsForThoseThatItsKindNeeds)
{
    constexpr std::int64_t late = 66 * kMs + 145'000;
    struct {
        zct_kind kind;
        std::int32_t root;
        times recorded; /* the ends of the calls */
        times zc;
    } const kinds[] = {
        {ZCT_ALLREDUCE, -1, times(4, 101 * kMs), times(4, late + kMs)},
        {ZCT_BCAST,
         0,
         {21 * kMs, 21 * kMs, 101 * kMs, 71 * kMs},
         {21 * kMs, 21 * kMs, 51 * kMs, late + kMs}},
        {ZCT_BCAST, 2, times(4, 101 * kMs), {51 * kMs, 51 * kMs, 51 * kMs, late + kMs}},
        {ZCT_REDUCE,
         1,
         {21 * kMs, 101 * kMs, 101 * kMs, 71 * kMs},
         {21 * kMs, late + kMs, 51 * kMs, late + kMs}},
        {ZCT_SCAN,
         -1,
         {21 * kMs, 21 * kMs, 101 * kMs, 101 * kMs},
         {21 * kMs, 21 * kMs, 51 * kMs, late + kMs}},
        {ZCT_NEIGHBOR_ALLTOALL,
         -1,
         {21 * kMs, 21 * kMs, 101 * kMs, 71 * kMs},
         {21 * kMs, 21 * kMs, 51 * kMs, late + kMs}},
    };
    for (const auto &k : kinds) {
        SCOPED_TRACE(zct::kind_name(k.kind));
        made_up_run made(4);
        made.message(2, 3, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
        made.collective(k.kind, k.root, {20 * kMs, 20 * kMs, 100 * kMs, 70 * kMs}, k.recorded);
        times recorded = k.recorded;
        times zc = k.zc;
        for (std::size_t i = 0; i < 4; i++)
            recorded[i] += kMs, zc[i] += kMs;
        const outcome o = play(made.end(recorded));
        EXPECT_EQ(o.stock, recorded);
        EXPECT_EQ(o.zc, zc);
    }
}

/* Rank 3 comes first and rank 0 last: each waits for all below it. */
TEST(ReplayTest, AScanFreesAllThatTheFirstHeldUp)
{
    made_up_run made(4);
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.collective(ZCT_SCAN, -1, {100 * kMs, 65 * kMs, 30 * kMs, 20 * kMs},
                    {101 * kMs, 101 * kMs, 101 * kMs, 101 * kMs});
    const outcome o = play(made.end(times(4, 102 * kMs)));
    EXPECT_EQ(o.stock, times(4, 102 * kMs));
    constexpr std::int64_t second = 63 * kMs + 145'000; /* it comes at 61.145 ms */
    EXPECT_EQ(o.zc, (times{52 * kMs, second, second, second}));
}

/* As many as a large job has: no rank may look through all others each time one of them comes. All
 * wait for rank 1 once, which is 33.855 ms less than they waited for rank 0. */
TEST(ReplayTest, ManyRanksMeetInCollectives)
{
    constexpr std::int32_t ranks = 2048;
    made_up_run made(ranks);
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    times begin(ranks, 20 * kMs);
    begin[0] = 100 * kMs;
    begin[1] = 70 * kMs;
    made.collective(ZCT_BARRIER, -1, begin, times(ranks, 101 * kMs));
    std::int64_t now = 110 * kMs;
    for (const zct_kind kind : {ZCT_BARRIER, ZCT_BCAST, ZCT_REDUCE, ZCT_ALLREDUCE, ZCT_GATHER,
                                ZCT_SCATTER, ZCT_ALLTOALL, ZCT_SCAN, ZCT_NEIGHBOR_ALLTOALL}) {
        for (const bool upwards : {true, false}) {
            for (std::size_t i = 0; i < ranks; i++)
                begin[i] = now + 1000 * static_cast<std::int64_t>(upwards ? i : ranks - 1 - i);
            made.collective(kind, ranks / 2, begin, times(ranks, now + 5 * kMs));
            now += 10 * kMs;
        }
    }
    const outcome o = play(made.end(times(ranks, now)));
    EXPECT_EQ(o.stock, times(ranks, now));
    EXPECT_EQ(o.zc, times(ranks, now - 33'855'000));
}

/* The receiver waits for all from 9 ms on, while they are sent one after the other; the sender does
 * from 60 ms on, and has worked meanwhile. */
TEST(ReplayTest, OneCallCompletesManyMessages)
{
    constexpr std::int64_t messages = 100'000;
    constexpr std::int64_t done = 60 * kMs + messages * kMs;
    made_up_run made(2);
    for (std::int64_t i = 0; i < messages; i++)
        made.message(0, 1, kBytes,
                     {10 * kMs + 10 * i, 60 * kMs, done, 5 * kMs + 10 * i, 9 * kMs, done});
    const outcome o = play(made.end(times(2, done + 10 * kMs)));
    EXPECT_EQ(o.stock, times(2, done + 10 * kMs));
    ASSERT_EQ(o.zc.size(), 2u);
    for (const std::int64_t end : o.zc)
        EXPECT_NEAR(static_cast<double>(end), static_cast<double>(done - 40 * kMs), 1000);
}

/* A file may say that a call begins before a collective that it ends with, if only by what the
 * clock rounds. It is not fit for a replay if it waits for its own rank, or for one that waits for
 * it. */
TEST(ReplayTest, ACallMayBeginBeforeItsCollective)
{
    const auto stock = [](zct_kind kind, std::int32_t root) {
        made_up_run made(2);
        made.collective(kind, root, {20 * kMs, 30 * kMs}, {40 * kMs, 40 * kMs});
        zct::run run = made.end({50 * kMs, 50 * kMs});
        run.ranks[0].calls.at(1).begin_ns = 10 * kMs;
        const std::vector<message> messages = messages_of(run);
        const timeline steps = timeline_of(run, messages);
        EXPECT_EQ(steps.unusable, "");
        const network network = measure_network(run, messages);
        return replay(run, messages, steps, network).stock();
    };
    EXPECT_FALSE(stock(ZCT_BARRIER, -1));
    EXPECT_FALSE(stock(ZCT_BCAST, 0));
    EXPECT_TRUE(stock(ZCT_BCAST, 1));
    EXPECT_TRUE(stock(ZCT_REDUCE, 1));
}

TEST(ReplayTest, BetweenHostsSmallerMessagesAreSentAtOnce)
{
    made_up_run made(2);
    constexpr std::uint64_t bytes = 100'000;
    made.message(0, 1, bytes, {10 * kMs, 10 * kMs, 61 * kMs, 60 * kMs, 60 * kMs, 61 * kMs});
    const outcome o = play(made.end({70 * kMs, 70 * kMs}));
    EXPECT_EQ(o.zc[0], 19 * kMs);
}

/* Two messages travel at once and share the link, and MPI_Waitall tells of both when the second is
 * there: 8 ms for both, not for each. */
void two_at_once(made_up_run &made)
{
    for (int i = 0; i < 2; i++)
        made.message(0, 1, kBytes, {10 * kMs, 60 * kMs, 68 * kMs, 9 * kMs, 60 * kMs, 68 * kMs},
                     0x10000u * static_cast<unsigned>(i + 1));
}

TEST(ReplayTest, MessagesThatTravelAtOnceShareTheirLinkOnce)
{
    made_up_run made(2);
    two_at_once(made);
    const zct::run &run = made.end({70 * kMs, 70 * kMs});
    const network n = measure_network(run, messages_of(run));
    EXPECT_NEAR(n.rates.at(0), 2.0 * kBytes / (8.0 * kMs), 1e-6);
    EXPECT_EQ(play(run).stock, times(2, 70 * kMs));
    EXPECT_EQ(play(run).zc, times(2, 62 * kMs)); /* hidden: they are there at 18 ms */
}

/* Rank 2 has two messages of 4 ms each on its way in. They are sent at once by hosts of their own.
 */
TEST(ReplayTest, ALinkCarriesTheMessagesOfSeveralSendersOneByOne)
{
    made_up_run made(3);
    made.message(0, 2, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.message(1, 2, kBytes, {10 * kMs, 10 * kMs, 68 * kMs, 64 * kMs, 64 * kMs, 68 * kMs});
    const outcome o = play(made.end({100 * kMs, 100 * kMs, 100 * kMs}));
    EXPECT_EQ(o.zc[0], 50 * kMs); /* goes on at 14 */
    EXPECT_EQ(o.zc[1], 50 * kMs); /* goes on at 18: 50 earlier than it did */
}

/* Both posted: stock begins when both are in MPI. */
TEST(ReplayTest, SmallerMessagesTravelBehindWorkToo)
{
    made_up_run made(2);
    made.message(0, 1, 256 << 10, {11 * kMs, 60 * kMs, 62 * kMs, 10 * kMs, 60 * kMs, 62 * kMs});
    made.message(0, 1, 100'000, {63 * kMs, 90 * kMs, 91 * kMs, 62 * kMs, 90 * kMs, 91 * kMs});
    const outcome o = play(made.end({100 * kMs, 100 * kMs}));
    EXPECT_EQ(o.stock, times(2, 100 * kMs));
    EXPECT_EQ(
        o.zc,
        times(2, 97 * kMs)); /* 2 ms of the first, 1 ms of the second, which is not announced */
}

/* The receiver waits already; its processor is given back to the sender 20 ms after the transfer.
 */
TEST(ReplayTest, ALateSenderGainsNothingWhateverDelaysOneSide)
{
    made_up_run made(2);
    made.message(0, 1, kBytes, {60 * kMs, 60 * kMs, 84 * kMs, 10 * kMs, 10 * kMs, 64 * kMs});
    const outcome o = play(made.end({100 * kMs, 100 * kMs}));
    EXPECT_EQ(o.zc, o.stock);
}

/* A blocking send to a receive that is posted, but whose rank works. */
TEST(ReplayTest, ASenderIsNotHeldWhereTheReceiveIsPosted)
{
    made_up_run made(2);
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 5 * kMs, 60 * kMs, 64 * kMs});
    const outcome o = play(made.end({100 * kMs, 70 * kMs}));
    EXPECT_EQ(o.zc, (times{50 * kMs, 66 * kMs}));
}

/* Rank 0 is held by rank 1, which is late; so what it sends to rank 2 is late, too. Rank 2 waits
 * for it in MPI_Probe from 20 ms on. */
TEST(ReplayTest, AProbeWaitsForItsMessage)
{
    made_up_run made(3);
    made.message(0, 1, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.probe(2, 20 * kMs, 65 * kMs);
    made.message(0, 2, 8,
                 {65 * kMs, 65 * kMs, 65 * kMs, 65 * kMs + 10, 65 * kMs + 10, 65 * kMs + 20});
    const outcome o = play(made.end({66 * kMs, 65 * kMs, 100 * kMs}));
    EXPECT_EQ(o.stock[2], 100 * kMs);
    /* It finds its message at once, which was sent at 15 ms. */
    EXPECT_NEAR(static_cast<double>(o.zc[2]), 55.0 * kMs, 0.1 * kMs);
}

/* The second of two messages finds no landing memory, and stays with its sender. */
TEST(ReplayTest, WithoutLandingMemoryASenderIsHeld)
{
    made_up_run made(3);
    made.message(0, 2, kBytes, {10 * kMs, 10 * kMs, 64 * kMs, 60 * kMs, 60 * kMs, 64 * kMs});
    made.message(1, 2, kBytes, {11 * kMs, 11 * kMs, 68 * kMs, 64 * kMs, 64 * kMs, 68 * kMs});
    const zct::run &run = made.end({100 * kMs, 100 * kMs, 100 * kMs});
    zc_model model = likely_model(1);
    model.landing_budget = kBytes;
    const times zc = play(run, model).zc;
    EXPECT_EQ(zc[0], 50 * kMs);
    EXPECT_NEAR(static_cast<double>(zc[1]), 96.1 * kMs,
                0.1 * kMs); /* its receive came 3.9 earlier */
}

TEST(ReplayTest, NeedsCompleteRecordingsOfOneThread)
{
    made_up_run made(2);
    zct::run run = late_receiver(made);
    run.ranks[1].complete = false;
    EXPECT_NE(timeline_of(run, messages_of(run)).unusable, "");
    run.ranks[1].complete = true;
    run.ranks[0].calls.push_back({50 * kMs, 70 * kMs, ZCT_FUNCTION_WAIT, 0, {}});
    EXPECT_NE(timeline_of(run, messages_of(run)).unusable.find("threads"), std::string::npos);
    run.ranks[0].has_calls = false;
    EXPECT_NE(timeline_of(run, messages_of(run)).unusable.find("calls"), std::string::npos);
}

} // namespace

} // namespace zc::forecast::test
