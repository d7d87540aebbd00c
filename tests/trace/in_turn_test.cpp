/* SPDX-License-Identifier: BSD-3-Clause */

/* Runs whose collectives are too many messages to have in memory at once. */

#include <sstream>

#include "support.h"

namespace zc::zct::test {

namespace {

std::string csv_of(const rank_trace &rank)
{
    std::ostringstream out;
    write_csv(out, rank);
    return out.str();
}

/** Each rank calls MPI_Alltoall so many times, and sends the next one a message between two.
 * @parts: MPI_Alltoallv, with sizes of its own for each rank. */
void exchange(const scratch_folder &folder, int ranks, int calls, bool parts)
{
    for (int rank = 0; rank < ranks; rank++) {
        rank_file file(folder, rank, ranks);
        for (int i = 0; i < calls; i++) {
            const std::int64_t now = 1000000 * (i + 1) + 10 * rank;
            const std::uint64_t call = zct_write_collective(
                &file, now, zct_writer_begin(&file), parts ? ZCT_ALLTOALLV : ZCT_ALLTOALL, 0, -1);
            const zct_run whole[] = {
                {ZCT_RUN_SEND, 0, static_cast<std::uint64_t>(ranks), 64, 0, 0},
                {ZCT_RUN_RECEIVE, 0, static_cast<std::uint64_t>(ranks), 64, 0x1000, 64}};
            for (const zct_run &run : whole) {
                for (int peer = 0; parts && peer < ranks; peer++) {
                    const zct_run part = {run.direction,         peer, 1, 60u + peer % 9u,
                                          0x1000u * (peer + 1u), 0};
                    zct_write_run(&file, &part);
                }
                if (!parts)
                    zct_write_run(&file, &run);
            }
            zct_write_collective_ready(&file);
            zct_write_collective_end(&file, 1000000 * (i + 1) + 500000, call);
            file.send(now + 600000, (rank + 1) % ranks, i, 8);
            file.receive(now + 600000, now + 700000, (rank + ranks - 1) % ranks, i, 8, 0x10);
        }
        file.close();
    }
}

TEST(InTurnTest, EachRankIsSeenAsItIsLoaded)
{
    const scratch_folder folder;
    exchange(folder, 5, 4, true);
    const run whole = load(folder.path());
    std::vector<std::string> seen;
    const run left = load_in_turn(folder.path(), nullptr, [&](const rank_trace &rank) {
        EXPECT_EQ(rank.sends.size(), 4u);
        seen.push_back(csv_of(rank));
    });
    ASSERT_EQ(seen.size(), whole.ranks.size());
    ASSERT_EQ(left.ranks.size(), whole.ranks.size());
    EXPECT_EQ(left.unmatched_receives + left.unmatched_sends + left.size_mismatches, 0u);
    for (std::size_t i = 0; i < seen.size(); i++) {
        EXPECT_EQ(seen[i], csv_of(whole.ranks[i]));
        EXPECT_EQ(whole.ranks[i].receives.size(), 4u * 6);
        EXPECT_EQ(whole.ranks[i].sends.size(), 4u * 6);
        ASSERT_EQ(left.ranks[i].receives.size(), 4u);
        EXPECT_EQ(left.ranks[i].sends.size(), 4u);
        EXPECT_EQ(left.ranks[i].collectives.size(), 4u);
        for (const receive &r : left.ranks[i].receives)
            EXPECT_EQ(r.kind, ZCT_P2P);
        EXPECT_EQ(left.ranks[i].receives[2].send_number, 2);
    }
}

/* 409,600 messages, of which a rank has 6,400. All would be 60 MiB. */
TEST(InTurnTest, ManyMessagesOfCollectivesTakeLittleMemory)
{
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer keeps what has been freed";
#endif
    for (const bool parts : {false, true}) {
        const scratch_folder folder;
        exchange(folder, 64, 100, parts);
        std::size_t seen = 0;
        const long grown = growth_by([&] {
            load_in_turn(folder.path(), nullptr,
                         [&](const rank_trace &rank) { seen += rank.receives.size(); });
            if (seen != 64u * 100 * 65)
                throw error("not all were seen");
        });
        EXPECT_GE(grown, 0);
        EXPECT_LT(grown, 20 << 10);
    }
}

} // namespace

} // namespace zc::zct::test
