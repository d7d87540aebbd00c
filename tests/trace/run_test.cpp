/* SPDX-License-Identifier: BSD-3-Clause */
#include "zct/trace.h"

#include <fstream>
#include <sstream>

#include "support.h"

using namespace zc::zct;
using namespace zc::zct::test;

namespace {

std::string csv_of(const rank_trace &rank)
{
    std::ostringstream out;
    write_csv(out, rank);
    return out.str();
}

constexpr const char *kColumns =
    "i,comm,src,tag,bytes,addr,kind,coll,t_post,t_done,t_sent,done_order,arrival_order\n";

/** Rank 0 sends rank 1 a message of 100 bytes and one of 200, with the same tag. */
void send_twice(const scratch_folder &folder)
{
    rank_file sender(folder, 0, 2);
    sender.send(1000, 1, 5, 100);
    sender.send(2000, 1, 5, 200);
    sender.close();
}

TEST(RunTest, FindsWhenEachMessageWasSent)
{
    const scratch_folder folder;
    {
        rank_file sender(folder, 0, 2);
        sender.send(3000, 1, 5, 100); /* second of the tag 5 to be sent is the second received */
        sender.send(4000, 1, 6, 50);
        sender.send(9000, 1, 5, 200);
        sender.close();
        rank_file receiver(folder, 1, 2);
        receiver.receive(1000, 12000, 0, 5, 100, 0xabc0);
        receiver.receive(2000, 13000, 0, 5, 200, 0xdef0);
        receiver.receive(5000, 14000, 0, 6, 50, 0x10);
        receiver.close();
    }
    const run run = load(folder.path());
    ASSERT_EQ(run.ranks.size(), 2u);
    EXPECT_EQ(run.unmatched_receives + run.unmatched_sends + run.size_mismatches, 0u);
    EXPECT_TRUE(run.ranks[1].complete);
    EXPECT_EQ(csv_of(run.ranks[1]), std::string(kColumns) + "0,0,0,5,100,abc0,p2p,-1,1,12,3,0,0\n"
                                                            "1,0,0,5,200,def0,p2p,-1,2,13,9,1,2\n"
                                                            "2,0,0,6,50,10,p2p,-1,5,14,4,2,1\n");
    ASSERT_EQ(run.ranks[0].sends.size(), 3u);
    EXPECT_EQ(run.ranks[0].sends[2].dest, 1);
    EXPECT_EQ(run.ranks[0].sends[2].bytes, 200u);
}

TEST(RunTest, MatchesProbedMessagesInOrderOfTheProbes)
{
    const scratch_folder folder;
    {
        send_twice(folder);
        rank_file receiver(folder, 1, 2);
        const std::uint64_t probe = zct_writer_begin(&receiver);
        receiver.receive(5000, 6000, 0, 5, 200, 0x20); /* took the second */
        const std::uint64_t order = zct_writer_begin(&receiver);
        const zct_receive matched = {7000, 8000, order, probe, 0, 0, 5, 100, 0x10};
        zct_write_receive(&receiver, &matched);
        receiver.close();
    }
    const run run = load(folder.path());
    EXPECT_EQ(run.size_mismatches, 0u);
    EXPECT_EQ(run.ranks[1].receives[0].sent_ns, 2000);
    EXPECT_EQ(run.ranks[1].receives[1].sent_ns, 1000);
}

TEST(RunTest, LostReceivesTakeTheirMessages)
{
    const scratch_folder folder;
    {
        send_twice(folder);
        rank_file receiver(folder, 1, 2);
        zct_write_lost(&receiver, zct_writer_begin(&receiver), 0, 0, 5);
        receiver.receive(5000, 6000, 0, 5, 200, 0x20);
        receiver.close();
    }
    const run run = load(folder.path());
    ASSERT_EQ(run.ranks[1].receives.size(), 1u);
    EXPECT_EQ(run.ranks[1].receives[0].sent_ns, 2000);
    EXPECT_EQ(run.unmatched_sends, 0u);
}

TEST(RunTest, SaysWhatIsNotKnownOfAloneFile)
{
    const scratch_folder folder;
    {
        rank_file receiver(folder, 1, 2);
        receiver.receive(1000, 12000, 0, 5, 100, 0xabc0);
        receiver.close(false);
    }
    const run run = load(folder.file(1));
    ASSERT_EQ(run.ranks.size(), 1u);
    EXPECT_FALSE(run.ranks[0].complete);
    EXPECT_FALSE(run.ranks[0].receives[0].sent_known);
    EXPECT_EQ(run.ranks[0].receives[0].sent_ns, 12000);
    EXPECT_EQ(run.unmatched_receives, 0u);
}

TEST(RunTest, CountsMessagesThatDoNotMatch)
{
    const scratch_folder folder;
    {
        rank_file sender(folder, 0, 2);
        sender.send(1000, 1, 5, 100);
        sender.send(1000, 1, 9, 100);
        sender.close();
        rank_file receiver(folder, 1, 2);
        receiver.receive(1000, 2000, 0, 5, 99, 0);
        receiver.receive(1000, 2000, 0, 6, 99, 0);
        receiver.close();
    }
    const run run = load(folder.path());
    EXPECT_EQ(run.size_mismatches, 1u);
    EXPECT_EQ(run.unmatched_receives, 1u);
    EXPECT_EQ(run.unmatched_sends, 1u);
}

/* Two communicators with the same members, made known in other orders than the
 * ranks' other communicators, are told apart by the order of their creation. */
TEST(RunTest, JoinsCommunicatorsByMembersAndCreation)
{
    const scratch_folder folder;
    const int both[] = {1, 0};
    const int self[] = {1};
    {
        rank_file a(folder, 0, 2);
        zct_write_communicator(&a, both, 2, nullptr, 0); /* 1 */
        zct_write_communicator(&a, both, 2, nullptr, 0); /* 2 */
        a.send(1000, 0, 5, 100, 2);
        a.send(2000, 0, 5, 200, 1);
        a.close();
        rank_file b(folder, 1, 2);
        zct_write_communicator(&b, self, 1, nullptr, 0); /* 1 */
        zct_write_communicator(&b, both, 2, nullptr, 0); /* 2 */
        zct_write_communicator(&b, both, 2, nullptr, 0); /* 3 */
        b.receive(1000, 3000, 1, 5, 100, 0x10, 3);
        b.receive(1000, 3000, 1, 5, 200, 0x20, 2);
        b.close();
    }
    const run run = load(folder.path());
    EXPECT_EQ(run.size_mismatches + run.unmatched_receives + run.unmatched_sends, 0u);
    ASSERT_EQ(run.communicators.size(), 4u);
    EXPECT_EQ(run.communicators[0].members, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(run.communicators[1].members, (std::vector<std::int32_t>{1, 0}));
    EXPECT_EQ(run.communicators[3].members, (std::vector<std::int32_t>{1}));
    EXPECT_EQ(run.ranks[1].receives[0].comm, 2u);
    EXPECT_EQ(run.ranks[1].receives[0].source, 0);
    EXPECT_EQ(run.ranks[1].receives[1].comm, 1u);
}

TEST(RunTest, JoinsTheSidesOfAnIntercommunicator)
{
    const scratch_folder folder;
    const int low[] = {0};
    const int high[] = {1, 2};
    {
        rank_file a(folder, 0, 3);
        zct_write_communicator(&a, low, 1, high, 2);
        a.send(1000, 1, 5, 100, 1); /* rank 1 of the others is world rank 2 */
        a.close();
        rank_file b(folder, 2, 3);
        zct_write_communicator(&b, high, 2, low, 1);
        b.receive(1000, 3000, 0, 5, 100, 0x10, 1);
        b.close();
    }
    const run run = load(folder.path());
    EXPECT_EQ(run.unmatched_receives + run.unmatched_sends, 0u);
    EXPECT_EQ(run.communicators.size(), 2u);
    EXPECT_EQ(run.ranks[1].receives[0].source, 0);
    EXPECT_EQ(run.ranks[1].receives[0].sent_ns, 1000);
}

/* The first rank sends the result of an allreduce when it has it. */
TEST(RunTest, TakesCollectivesApart)
{
    const scratch_folder folder;
    for (int rank = 0; rank < 2; rank++) {
        rank_file file(folder, rank, 2);
        const std::uint64_t call = zct_write_collective(
            &file, 1000 * (rank + 1), zct_writer_begin(&file), ZCT_ALLREDUCE, 0, -1);
        const zct_run send = {ZCT_RUN_SEND, 1 - rank, 1, 8, 0, 0};
        const zct_run receive = {ZCT_RUN_RECEIVE, 0, 1, 8, 0x100, 0};
        zct_write_run(&file, &send);
        zct_write_run(&file, &receive);
        zct_write_collective_ready(&file);
        zct_write_collective_end(&file, 5000 + 1000 * rank, call);
        const std::uint64_t gather =
            zct_write_collective(&file, 7000 + rank, zct_writer_begin(&file), ZCT_ALLGATHER, 0, -1);
        const zct_run blocks = {ZCT_RUN_RECEIVE, 0, 2, 4, 0x200, 16};
        zct_write_run(&file, &blocks);
        zct_write_collective_ready(&file);
        zct_write_collective_end(&file, 9000, gather);
        file.close();
    }
    const run run = load(folder.path());
    EXPECT_EQ(csv_of(run.ranks[0]), std::string(kColumns) +
                                        "0,0,0,-1,8,100,allreduce,0,1,5,1,0,0\n"
                                        "1,0,0,-1,4,200,allgather,1,7,9,7,1,1\n"
                                        "2,0,1,-1,4,210,allgather,1,7,9,7,2,2\n");
    EXPECT_EQ(csv_of(run.ranks[1]), std::string(kColumns) +
                                        "0,0,0,-1,8,100,allreduce,0,2,6,5,0,0\n"
                                        "1,0,0,-1,4,200,allgather,1,7,9,7,1,1\n"
                                        "2,0,1,-1,4,210,allgather,1,7,9,7,2,2\n");
    std::ostringstream events;
    run_in_turn in_turn(folder.path());
    write_events_csv(events, in_turn);
    EXPECT_EQ(events.str(), "t,src,dst,bytes,kind\n2,1,0,8,allreduce\n5,0,1,8,allreduce\n");
}

TEST(RunTest, LeavesOutACollectiveThatDidNotEnd)
{
    const scratch_folder folder;
    {
        rank_file file(folder, 0, 1);
        zct_write_collective(&file, 1000, zct_writer_begin(&file), ZCT_ALLREDUCE, 0, -1);
        const zct_run receive = {ZCT_RUN_RECEIVE, 0, 1, 8, 0x100, 0};
        zct_write_run(&file, &receive);
        zct_write_collective_ready(&file);
        file.close(false);
    }
    EXPECT_TRUE(load(folder.path()).ranks[0].receives.empty());
}

TEST(RunTest, RefusesFilesOfDifferentRuns)
{
    const scratch_folder folder;
    rank_file(folder, 0, 2, 7).close();
    rank_file(folder, 1, 2, 8).close();
    EXPECT_THROW(load(folder.path()), error);
}

TEST(RunTest, RefusesAFileTwice)
{
    const scratch_folder folder;
    rank_file(folder, 0, 2).close();
    std::filesystem::copy_file(folder.file(0), folder.file(1));
    EXPECT_THROW(load(folder.path()), error);
}

/* A disk that was full when two of the ranks began. */
TEST(RunTest, LeavesOutFilesThatCannotBeRead)
{
    const scratch_folder folder;
    send_twice(folder);
    std::ofstream(folder.file(1)).flush();
    std::ofstream(folder.file(2)) << "something else";
    EXPECT_THROW(load(folder.path()), error);
    std::vector<std::string> unreadable;
    const run run = load(folder.path(), &unreadable);
    ASSERT_EQ(run.ranks.size(), 1u);
    EXPECT_EQ(run.ranks[0].sends.size(), 2u);
    ASSERT_EQ(unreadable.size(), 2u);
    EXPECT_EQ(unreadable[0], folder.file(1).string() + ": not a zc-trace file");
    std::filesystem::remove(folder.file(0));
    EXPECT_THROW(load(folder.path(), &unreadable), error);
}

TEST(RunTest, NamesTheFilesOfATrace)
{
    const scratch_folder folder;
    const std::filesystem::path spawned = folder.path() / "spawned-0123.zct";
    const std::filesystem::path other = folder.path() / "other.zct";
    std::filesystem::create_directories(spawned);
    std::filesystem::create_directories(other);
    std::filesystem::create_directories(folder.file(3));
    for (const auto &file : {folder.file(10), folder.file(2), spawned / "r0.zct", spawned / "notes",
                             other / "r0.zct", folder.path() / "rx.zct"})
        std::ofstream(file) << "something";
    EXPECT_EQ(trace_files(folder.path()),
              (std::vector{folder.file(2), folder.file(10), spawned / "r0.zct"}));
    EXPECT_TRUE(trace_files(folder.path() / "missing").empty());
}

TEST(RunTest, RefusesAFolderWithoutTraces)
{
    const scratch_folder folder;
    EXPECT_THROW(load(folder.path()), error);
    EXPECT_FALSE(is_trace_folder(folder.path()));
    EXPECT_FALSE(is_trace_file(folder.file(0)));
    std::ofstream(folder.file(0)) << "something else";
    EXPECT_TRUE(is_trace_folder(folder.path()));
    EXPECT_FALSE(is_trace_file(folder.file(0)));
    EXPECT_THROW(load(folder.path()), error);
}

TEST(RunTest, CountsWithoutTakingApart)
{
    const scratch_folder folder;
    {
        rank_file file(folder, 2, 3);
        file.send(1, 1, 1, 1);
        file.receive(1, 2, 0, 1, 1, 1);
        file.close();
    }
    const summary s = summarize(folder.file(2));
    EXPECT_EQ(s.rank, 2);
    EXPECT_EQ(s.processes, 3);
    EXPECT_EQ(s.sends, 1u);
    EXPECT_EQ(s.receives, 1u);
    EXPECT_EQ(s.communicators, 1u);
    EXPECT_TRUE(s.complete);
}

/* Ten MiB of records that would be 250 MB if all were kept. */
TEST(RunTest, CountsALargeFileInLittleMemory)
{
    const scratch_folder folder;
    constexpr int kSends = 3500000;
    {
        rank_file file(folder, 0, 2);
        for (int i = 0; i < kSends; i++)
            file.send(i, 1, 1, 1);
        file.close();
    }
    EXPECT_EQ(summarize(folder.file(0)).sends, std::uint64_t{kSends});
    const long grown = growth_by([&] { summarize(folder.file(0)); });
    EXPECT_GE(grown, 0);
    EXPECT_LT(grown, 32 << 10);
}

/* What is counted is what is read, whatever types of records there are. */
TEST(RunTest, CountsWhatItReads)
{
    const scratch_folder folder;
    {
        rank_file file(folder, 0, 2);
        for (int i = 0; i < 3; i++) {
            const std::uint64_t call =
                zct_write_collective(&file, 900, zct_writer_begin(&file), ZCT_BARRIER, 0, -1);
            zct_write_collective_ready(&file);
            file.send(1000, 1, 1, 1);
            zct_writer_flush(&file);
            zct_write_collective_end(&file, 1100, call);
            file.receive(1200, 1300, 1, 2, 8, 0x100);
        }
        file.close();
    }
    const file_records read = read_records(folder.file(0));
    const file_records counted = count_records(folder.file(0));
    EXPECT_EQ(read.collectives.size(), counted.counts.collectives);
    EXPECT_EQ(read.sends.size(), counted.counts.sends);
    EXPECT_EQ(read.receives.size(), counted.counts.receives);
    EXPECT_EQ(counted.counts.collectives, 3u);
    EXPECT_TRUE(counted.collectives.empty() && counted.sends.empty() && counted.receives.empty());
    EXPECT_TRUE(counted.complete);
}

TEST(RunTest, WritesMetaThatIsJson)
{
    const scratch_folder folder;
    rank_file(folder, 0, 1).close();
    std::ostringstream out;
    write_meta_json(out, run_in_turn(folder.path()), {{}});
    EXPECT_NE(out.str().find("\"program\": \"program -x \\\"1\\\"\""), std::string::npos);
    EXPECT_NE(out.str().find("\"comms\": {\"0\": [0]}"), std::string::npos);
}

} // namespace
