/* SPDX-License-Identifier: BSD-3-Clause */

/* Versions 2 and 3 of the format: calls, call sites, and clocks that were compared twice. */

#include "crc32c.h"
#include "support.h"

namespace zc::zct::test {

namespace {

void write_call(zct_writer *w, zct_function function, std::int64_t begin, std::int64_t end,
                std::uint32_t site, const std::vector<std::uint64_t> &sends)
{
    const zct_call call = {begin, end, function, site, sends.data(), sends.size()};
    zct_write_call(w, &call);
}

TEST(CallsTest, ComeBackAsWritten)
{
    const scratch_folder folder;
    rank_file file(folder, 0, 2, 7, true);
    EXPECT_EQ(zct_write_site(&file, 0x5000, 0x1000, "/bin/program", "main"), 0u);
    EXPECT_EQ(zct_write_site(&file, 0x6000, 0x2000, "/lib/library.so", ""), 1u);
    (&file)->site = 1;
    file.send(100, 1, 3, 4096);
    file.send(120, 1, 4, 4096);
    zct_writer_flush(&file); /* what numbers are relative to begins again */
    (&file)->site = 0;
    file.send(140, 1, 5, 4096);
    file.receive(150, 300, 1, 6, 8, 0x7000);
    write_call(&file, ZCT_FUNCTION_WAIT, 200, 300, 1, {2, 0, 1});
    file.close();

    const run run = load(folder.path());
    const rank_trace &rank = run.ranks.at(0);
    EXPECT_TRUE(rank.complete);
    EXPECT_TRUE(rank.has_calls);
    ASSERT_EQ(rank.sites.size(), 2u);
    EXPECT_EQ(rank.sites[0].offset, 0x1000u);
    EXPECT_EQ(rank.sites[0].address, 0x5000u);
    EXPECT_EQ(rank.sites[0].symbol, "main");
    EXPECT_EQ(rank.sites[1].module, "/lib/library.so");
    ASSERT_EQ(rank.sends.size(), 3u);
    EXPECT_EQ(rank.sends[0].site, 1u);
    EXPECT_EQ(rank.sends[2].site, 0u);
    EXPECT_EQ(rank.sends[2].number, 2);
    EXPECT_EQ(rank.receives.at(0).site, 0u);
    ASSERT_EQ(rank.calls.size(), 1u);
    EXPECT_EQ(rank.calls[0].begin_ns, 200);
    EXPECT_EQ(rank.calls[0].end_ns, 300);
    EXPECT_EQ(rank.calls[0].function, ZCT_FUNCTION_WAIT);
    EXPECT_EQ(rank.calls[0].site, 1u);
    EXPECT_EQ(rank.calls[0].sends, (std::vector<std::uint64_t>{2, 0, 1}));
}

TEST(CallsTest, CountsOfWhatIsNotRecordedComeBack)
{
    const scratch_folder folder;
    rank_file file(folder, 0, 1, 7, true);
    zct_write_site(&file, 1, 1, "", "");
    const zct_unrecorded_count count = {ZCT_UNRECORDED_GET, 0, 3, std::uint64_t{5} << 40, 700};
    zct_write_unrecorded(&file, &count);
    file.close();
    const run run = load(folder.path());
    ASSERT_EQ(run.ranks.at(0).unrecorded_calls.size(), 1u);
    const unrecorded &u = run.ranks[0].unrecorded_calls[0];
    EXPECT_EQ(u.what, ZCT_UNRECORDED_GET);
    EXPECT_EQ(u.site, 0u);
    EXPECT_EQ(u.calls, 3u);
    EXPECT_EQ(u.bytes, std::uint64_t{5} << 40);
    EXPECT_EQ(u.ns, 700u);
}

/* What version 3 adds is not in a file of version 2; all else is the same. */
TEST(CallsTest, ReadsFilesOfVersion2)
{
    const scratch_folder folder;
    rank_file file(folder, 0, 1, 7, true);
    zct_write_site(&file, 1, 1, "", "");
    write_call(&file, ZCT_FUNCTION_WAIT, 1, 2, 0, {});
    file.close();
    std::vector<std::uint8_t> bytes = bytes_of(folder.file(0));
    bytes[8] = 2;
    const std::size_t head = 16 + bytes[12]; /* its length is below 256 */
    const std::uint32_t crc = zc_crc32c(0, bytes.data(), head);
    for (unsigned i = 0; i < 4; i++)
        bytes[head + i] = static_cast<std::uint8_t>(crc >> (8 * i));
    write_bytes(folder.file(0), bytes);
    EXPECT_EQ(load(folder.path()).ranks.at(0).calls.size(), 1u);
}

TEST(CallsTest, OldFilesHaveNone)
{
    const scratch_folder folder;
    rank_file file(folder, 0, 1);
    file.send(100, 0, 3, 8);
    file.close();
    const run run = load(folder.path());
    EXPECT_FALSE(run.ranks.at(0).has_calls);
    EXPECT_TRUE(run.ranks.at(0).sites.empty());
}

TEST(CallsTest, ReceivesKnowTheirSends)
{
    const scratch_folder folder;
    rank_file sender(folder, 0, 2);
    sender.send(100, 1, 3, 8);
    sender.send(110, 1, 4, 8);
    sender.close();
    rank_file receiver(folder, 1, 2);
    receiver.receive(90, 200, 0, 4, 8, 0x1000);
    receiver.close();
    const run run = load(folder.path());
    EXPECT_EQ(run.ranks.at(1).receives.at(0).send_number, 1);
}

TEST(CallsTest, SynchronousSendsAreTold)
{
    const scratch_folder folder;
    for (const bool calls : {true, false}) {
        rank_file file(folder, calls ? 1 : 0, 2, 7, calls);
        if (calls)
            zct_write_site(&file, 1, 1, "", "");
        file.send(100, 0, 3, 8);
        (&file)->synchronous = true;
        file.send(200, 0, 3, 8);
        (&file)->synchronous = false;
        file.send(300, 0, 3, 8);
        file.close();
    }
    const run run = load(folder.path());
    for (const rank_trace &rank : run.ranks) {
        ASSERT_EQ(rank.sends.size(), 3u);
        EXPECT_FALSE(rank.sends[0].synchronous);
        EXPECT_EQ(rank.sends[1].synchronous, rank.has_calls);
        EXPECT_FALSE(rank.sends[2].synchronous);
    }
}

/* A clock that runs 1 % fast is corrected between the two comparisons. */
TEST(CallsTest, TimesFollowTheDriftOfTheClock)
{
    const scratch_folder folder;
    rank_file file(folder, 1, 2, 7, true);
    zct_write_site(&file, 1, 1, "", "");
    zct_write_clock(&file, 0, 0, 500);
    file.send(505'000, 0, 3, 8);
    file.receive(202'000, 808'000, 0, 4, 8, 0x1000);
    write_call(&file, ZCT_FUNCTION_WAIT, 707'000, 808'000, 0, {});
    zct_write_clock(&file, 1'010'000, 10'000, 900);
    file.close();
    const run run = load(folder.path());
    const rank_trace &rank = run.ranks.at(0);
    EXPECT_NEAR(static_cast<double>(rank.sends.at(0).sent_ns), 500'000, 1);
    EXPECT_NEAR(static_cast<double>(rank.receives.at(0).posted_ns), 200'000, 1);
    EXPECT_NEAR(static_cast<double>(rank.receives.at(0).done_ns), 800'000, 1);
    EXPECT_NEAR(static_cast<double>(rank.calls.at(0).begin_ns), 700'000, 1);
    /* What a call completed is found by its end: both are corrected alike. */
    EXPECT_EQ(rank.calls.at(0).end_ns, rank.receives.at(0).done_ns);
    EXPECT_EQ(rank.clock_error_ns, 900u);
}

TEST(CallsTest, RefusesNumbersOfNothing)
{
    const scratch_folder folder;
    rank_file file(folder, 0, 1, 7, true);
    zct_write_site(&file, 1, 1, "", "");
    write_call(&file, ZCT_FUNCTION_WAIT, 1, 2, 0, {0}); /* no send was begun */
    file.close();
    EXPECT_THROW(load(folder.path()), error);

    const scratch_folder other;
    rank_file nowhere(other, 0, 1, 7, true);
    write_call(&nowhere, ZCT_FUNCTION_WAIT, 1, 2, 0, {}); /* no site was announced */
    nowhere.close();
    EXPECT_THROW(load(other.path()), error);
}

} // namespace

} // namespace zc::zct::test
