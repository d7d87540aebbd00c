/* SPDX-License-Identifier: BSD-3-Clause */

/* Runs of more rows than there should be in memory. */

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "sorter.h"
#include "support.h"

namespace zc::zct::test {

namespace {

/** Two ranks send each other so many messages. Of two in a row the second is taken first. */
void write_long_run(const scratch_folder &folder, int messages)
{
    for (int rank = 0; rank < 2; rank++) {
        rank_file file(folder, rank, 2);
        for (int i = 0; i < messages; i++) {
            file.send(1000 * (i + 1) + rank, 1 - rank, i % 2, 8);
            if (i % 2 == 1)
                for (const int taken : {1, 0})
                    file.receive(1000 * (i + 1) + 100, 1000 * (i + 1) + 200, 1 - rank, taken, 8,
                                 0x1000u * static_cast<unsigned>(taken + 1));
        }
        file.close();
    }
}

TEST(LongRunTest, MemoryDoesNotGrowWithTheRows)
{
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer keeps what has been freed";
#endif
    constexpr int kMessages = 300000; /* of a rank. Rows and sends of all of them are 110 MiB. */
    const scratch_folder folder;
    write_long_run(folder, kMessages);
    const long received = growth_by([&] {
        run_in_turn run(folder.path());
        for (std::size_t place = 0; place < 2; place++) {
            std::uint64_t row = 0;
            run.each_receive(place, [&](const receive &r) {
                if (!r.sent_known || r.arrival_order != (row ^ 1) || r.done_order != row)
                    throw error("a wrong row");
                row++;
            });
            if (row != kMessages)
                throw error("not all were seen");
        }
        if (run.about().unmatched_receives || run.about().unmatched_sends)
            throw error("not all were matched");
    });
    EXPECT_GE(received, 0);
    EXPECT_LT(received, 64 << 10);
    const long sent = growth_by([&] {
        std::int64_t last = 0;
        std::size_t seen = 0;
        run_in_turn(folder.path()).each_send([&](std::int32_t, const send &s) {
            if (s.sent_ns < last)
                throw error("not in order");
            last = s.sent_ns;
            seen++;
        });
        if (seen != std::size_t{2} * kMessages)
            throw error("not all were seen");
    });
    EXPECT_GE(sent, 0);
    EXPECT_LT(sent, 40 << 10);
}

struct numbered {
    int value;
    int number;
    bool operator<(const numbered &other) const
    {
        return value != other.value ? value < other.value : number < other.number;
    }
};

TEST(LongRunTest, WhatDoesNotFitIsInOrder)
{
    constexpr int kRecords = 1000;
    for (const std::size_t budget : {1u, 24u, 1000u, 7999u, 8000u, 100000u}) {
        sorter<numbered> sorted(budget);
        for (int i = 0; i < kRecords; i++)
            sorted.add({i * 7919 % 101, i});
        for (int round = 0; round < 2; round++) {
            int seen = 0;
            numbered last = {-1, 0};
            sorted.each([&](const numbered &n) {
                EXPECT_LT(last, n);
                last = n;
                seen++;
            });
            EXPECT_EQ(seen, kRecords);
            EXPECT_EQ(sorted.front(), nullptr);
        }
    }
}

TEST(LongRunTest, NothingIsInOrder)
{
    sorter<numbered> sorted(100);
    sorted.rewind();
    EXPECT_EQ(sorted.front(), nullptr);
}

TEST(LongRunTest, SaysWhereThereIsNoRoom)
{
    const char *before = std::getenv("TMPDIR");
    const std::string kept = before ? before : "";
    ASSERT_EQ(setenv("TMPDIR", "/nowhere", 1), 0);
    sorter<numbered> sorted(1);
    std::string why;
    try {
        for (int i = 0; i < 10; i++)
            sorted.add({i, i});
    } catch (const error &e) {
        why = e.what();
    }
    EXPECT_NE(why.find("/nowhere"), std::string::npos) << why;
    if (before)
        setenv("TMPDIR", kept.c_str(), 1);
    else
        unsetenv("TMPDIR");
}

/** How many receives and sends are in a run. */
std::pair<int, int> count(run_in_turn &run)
{
    std::pair<int, int> n;
    run.each_receive(0, [&](const receive &) { n.first++; });
    run.each_send([&](std::int32_t, const send &) { n.second++; });
    return n;
}

TEST(LongRunTest, AFileThatGrowsIsReadToWhereItEnded)
{
    const scratch_folder folder;
    rank_file file(folder, 0, 1);
    file.send(100, 0, 1, 8);
    file.receive(200, 300, 0, 1, 8, 0x10);
    zct_writer_flush(&file);
    run_in_turn run(folder.path());
    for (int i = 0; i < 5; i++) {
        file.send(400 + i, 0, 1, 8);
        file.receive(500 + i, 600 + i, 0, 1, 8, 0x10);
    }
    file.close();
    EXPECT_FALSE(run.about().ranks[0].complete);
    EXPECT_EQ(count(run), std::pair(1, 1));
    run_in_turn again(folder.path());
    EXPECT_TRUE(again.about().ranks[0].complete);
    EXPECT_EQ(count(again), std::pair(6, 6));
}

TEST(LongRunTest, ACutFileIsReadToItsLastWholeBlock)
{
    const scratch_folder folder;
    {
        rank_file file(folder, 0, 1);
        file.send(100, 0, 1, 8);
        file.receive(200, 300, 0, 1, 8, 0x10);
        zct_writer_flush(&file);
        file.send(400, 0, 1, 8);
        file.close();
    }
    auto bytes = bytes_of(folder.file(0));
    bytes.pop_back();
    write_bytes(folder.file(0), bytes);
    run_in_turn run(folder.path());
    EXPECT_GT(run.about().ranks[0].cut_bytes, 0u);
    EXPECT_EQ(count(run), std::pair(1, 1));
}

TEST(LongRunTest, AFileThatShrinksIsAnError)
{
    const scratch_folder folder;
    {
        rank_file file(folder, 0, 1);
        file.send(100, 0, 1, 8);
        file.close();
    }
    run_in_turn run(folder.path());
    std::filesystem::resize_file(folder.file(0), std::filesystem::file_size(folder.file(0)) - 1);
    EXPECT_THROW(count(run), error);
}

/* A collective that goes on keeps those behind it waiting, whose runs are in blocks before. */
TEST(LongRunTest, CollectivesMayEndBlocksLater)
{
    const scratch_folder folder;
    {
        rank_file file(folder, 0, 1);
        std::vector<std::uint64_t> calls;
        for (int i = 0; i < 4; i++) {
            calls.push_back(zct_write_collective(&file, 1000 * (i + 1), zct_writer_begin(&file),
                                                 ZCT_ALLGATHER, 0, -1));
            const zct_run own = {ZCT_RUN_RECEIVE, 0, 1, 10u + static_cast<unsigned>(i), 0x10, 0};
            zct_write_run(&file, &own);
            zct_write_collective_ready(&file);
            zct_writer_flush(&file);
        }
        for (const int i : {2, 1, 0}) {
            zct_write_collective_end(&file, 9000, calls[static_cast<std::size_t>(i)]);
            zct_writer_flush(&file);
        }
        file.close(false);
    }
    run_in_turn run(folder.path());
    std::vector<std::uint64_t> bytes;
    std::vector<std::uint64_t> done;
    run.each_receive(0, [&](const receive &r) {
        bytes.push_back(r.bytes);
        done.push_back(r.done_order);
    });
    EXPECT_EQ(bytes, (std::vector<std::uint64_t>{10, 11, 12}));
    EXPECT_EQ(done, (std::vector<std::uint64_t>{2, 1, 0}));
    EXPECT_EQ(load(folder.path()).ranks[0].collectives.size(), 4u);
}

} // namespace

} // namespace zc::zct::test
