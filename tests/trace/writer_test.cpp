/* SPDX-License-Identifier: BSD-3-Clause */
#include <random>

#include "crc32c.h"
#include "runs.h"
#include "support.h"

using namespace zc::zct;
using namespace zc::zct::test;

namespace {

TEST(Crc32c, GivesTheKnownValueOfTheDigits)
{
    /* The check value of CRC-32/ISCSI in the catalogue of Greg Cook. */
    EXPECT_EQ(zc_crc32c(0, "123456789", 9), 0xe3069283u);
    EXPECT_EQ(zc_crc32c(zc_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
}

TEST(WriterTest, KeepsTheHeader)
{
    const scratch_folder folder;
    rank_file(folder, 3, 5, 0xfedcba9876543210).close();
    const file_records file = read_records(folder.file(3));
    EXPECT_EQ(file.rank, 3);
    EXPECT_EQ(file.processes, 5);
    EXPECT_EQ(file.run, 0xfedcba9876543210);
    EXPECT_EQ(file.start_ns, 1700000000000000000u);
    EXPECT_EQ(file.mpi, "some MPI");
    EXPECT_EQ(file.program, "program");
    EXPECT_EQ(file.command, "program -x \"1\"");
    EXPECT_EQ(file.host, "host");
    EXPECT_TRUE(file.complete);
    EXPECT_EQ(file.cut_bytes, 0u);
}

TEST(WriterTest, RefusesAFileThatExists)
{
    const scratch_folder folder;
    rank_file(folder, 0, 1).close();
    zct_writer w;
    const zct_head head = {0, 1, 1, 1, "", "", "", "", false};
    EXPECT_EQ(zct_writer_open(&w, folder.file(0).c_str(), &head), -EEXIST);
}

/* Values of every size, in every field, over many blocks. */
TEST(WriterTest, KeepsEveryValueOverManyBlocks)
{
    const scratch_folder folder;
    std::mt19937_64 random(1);
    auto any = [&] { return random() >> (random() % 64); };
    std::vector<receive_record> receives;
    std::vector<send_record> sends;
    {
        rank_file file(folder, 0, 1000);
        std::int64_t now = 0;
        for (int i = 0; i < 60000; i++) {
            now += static_cast<std::int64_t>(any() >> 30);
            const auto peer = static_cast<std::int32_t>(random() % 1000);
            const auto tag = static_cast<std::int32_t>(any() & 0x7fffffff);
            if (random() % 2) {
                const std::uint64_t order = zct_writer_begin(&file);
                const std::uint64_t matched = order - (random() % 3 ? 0 : random() % (order + 1));
                const zct_receive r = {now - static_cast<std::int64_t>(any() >> 30),
                                       now,
                                       order,
                                       matched,
                                       0,
                                       peer,
                                       tag,
                                       any(),
                                       any()};
                zct_write_receive(&file, &r);
                receives.push_back({r.posted_ns, now, order, matched, 0, peer, tag, r.bytes, r.addr,
                                    receives.size(), 0});
            } else {
                sends.push_back({now, 0, peer, tag, any(), sends.size(), 0});
                file.send(now, peer, tag, sends.back().bytes);
            }
        }
        file.close();
    }
    const file_records file = read_records(folder.file(0));
    ASSERT_EQ(file.receives.size(), receives.size());
    for (std::size_t i = 0; i < receives.size(); i++) {
        const receive_record &a = file.receives[i];
        const receive_record &b = receives[i];
        ASSERT_EQ(std::tie(a.posted_ns, a.done_ns, a.order, a.matched, a.comm, a.peer, a.tag),
                  std::tie(b.posted_ns, b.done_ns, b.order, b.matched, b.comm, b.peer, b.tag))
            << i;
        ASSERT_EQ(std::tie(a.bytes, a.addr, a.done_order), std::tie(b.bytes, b.addr, b.done_order))
            << i;
    }
    ASSERT_EQ(file.sends.size(), sends.size());
    for (std::size_t i = 0; i < sends.size(); i++) {
        const send_record &a = file.sends[i];
        const send_record &b = sends[i];
        ASSERT_EQ(std::tie(a.time_ns, a.comm, a.peer, a.tag, a.bytes),
                  std::tie(b.time_ns, b.comm, b.peer, b.tag, b.bytes))
            << i;
    }
}

TEST(WriterTest, KeepsReceivesThatCompleteInAnotherOrder)
{
    const scratch_folder folder;
    {
        rank_file file(folder, 0, 2);
        const std::uint64_t first = zct_writer_begin(&file);
        const std::uint64_t second = zct_writer_begin(&file);
        const zct_receive b = {5, 10, second, second, 0, 1, 2, 3, 4};
        const zct_receive a = {4, 20, first, first, 0, 1, 2, 3, 4};
        zct_write_receive(&file, &b);
        zct_write_receive(&file, &a);
        file.close();
    }
    const file_records file = read_records(folder.file(0));
    ASSERT_EQ(file.receives.size(), 2u);
    EXPECT_EQ(file.receives[0].order, 1u);
    EXPECT_EQ(file.receives[1].order, 0u);
}

TEST(WriterTest, KeepsCommunicatorsOfAnyShape)
{
    const scratch_folder folder;
    const std::vector<int> scattered = {9, 3, 4, 5, 0, 7};
    const std::vector<int> strangers = {-1, -1, 2, -1};
    std::vector<int> reversed(70000);
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    {
        rank_file file(folder, 0, 70000);
        zct_write_communicator(&file, scattered.data(), scattered.size(), nullptr, 0);
        zct_write_communicator(&file, scattered.data(), scattered.size(), strangers.data(),
                               strangers.size());
        /* Larger than a block. */
        zct_write_communicator(&file, reversed.data(), reversed.size(), nullptr, 0);
        file.close();
    }
    const file_records file = read_records(folder.file(0));
    ASSERT_EQ(file.communicators.size(), 4u);
    EXPECT_EQ(file.communicators[0].local.size(), 70000u);
    EXPECT_EQ(file.communicators[1].local.all(), scattered);
    EXPECT_FALSE(file.communicators[1].inter);
    EXPECT_TRUE(file.communicators[2].inter);
    EXPECT_EQ(file.communicators[2].remote.all(), strangers);
    EXPECT_EQ(file.communicators[3].local.all(), reversed);
}

/* An alltoallv of many ranks is more than a block. */
TEST(WriterTest, KeepsLargeCollectives)
{
    const scratch_folder folder;
    constexpr int kRanks = 20000;
    std::mt19937_64 random(2);
    std::vector<zct_run> runs;
    {
        rank_file file(folder, 0, kRanks);
        EXPECT_EQ(zct_write_collective(&file, 100, zct_writer_begin(&file), ZCT_ALLTOALLV, 0, -1),
                  0u);
        for (int i = 0; i < kRanks; i++) {
            runs.push_back({ZCT_RUN_SEND, i, 1, random(), 0, 0});
            runs.push_back({ZCT_RUN_RECEIVE, i, 1, random(), random(), 0});
        }
        runs.push_back({ZCT_RUN_RECEIVE, 5, 100, 80, random(), 800});
        for (const zct_run &run : runs)
            zct_write_run(&file, &run);
        zct_write_collective_ready(&file);
        zct_write_collective_end(&file, 200, 0);
        file.close();
    }
    const file_records file = read_records(folder.file(0));
    ASSERT_EQ(file.collectives.size(), 1u);
    const collective_record &c = file.collectives[0];
    EXPECT_TRUE(c.ended);
    EXPECT_EQ(c.begin_ns, 100);
    EXPECT_EQ(c.end_ns, 200);
    std::vector<run_record> read;
    for_each_run(file, c, [&](const run_record &run) { read.push_back(run); });
    ASSERT_EQ(read.size(), runs.size());
    for (std::size_t i = 0; i < runs.size(); i++) {
        ASSERT_EQ(read[i].first, runs[i].first);
        ASSERT_EQ(read[i].count, runs[i].count);
        ASSERT_EQ(read[i].bytes, runs[i].bytes);
        ASSERT_EQ(read[i].addr, runs[i].addr);
    }
    EXPECT_EQ(read.back().stride, 800u);
}

TEST(WriterTest, IsCompact)
{
    const scratch_folder folder;
    rank_file file(folder, 0, 4);
    /* A stencil: four neighbours' messages in turn, a millisecond apart. */
    for (int i = 0; i < 100000; i++) {
        const std::int64_t now = 1000000 + i * INT64_C(250000);
        file.receive(now - 180000, now, i % 4, i % 4, 64000, 0x7f0000000000 + (i % 4) * 0x10000u);
    }
    file.close();
    EXPECT_LT(std::filesystem::file_size(folder.file(0)), 100000u * 16);
}

TEST(WriterTest, WritesOutWhatIsOlderThanASecond)
{
    const scratch_folder folder;
    rank_file file(folder, 0, 2);
    const auto before = std::filesystem::file_size(folder.file(0));
    file.send(1000, 1, 1, 1);
    EXPECT_EQ(std::filesystem::file_size(folder.file(0)), before);
    file.send(2000000000, 1, 1, 1);
    EXPECT_GT(std::filesystem::file_size(folder.file(0)), before);
    EXPECT_EQ(read_records(folder.file(0)).sends.size(), 2u);
}

} // namespace
