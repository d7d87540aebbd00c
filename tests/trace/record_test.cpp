/* SPDX-License-Identifier: BSD-3-Clause */
#include "record.h"

#include <random>

#include "crc32c.h"
#include "support.h"

using namespace zc::zct;
using namespace zc::zct::test;

namespace {

void put_u32(std::vector<std::uint8_t> &bytes, std::size_t at, std::uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::uint32_t u32_at(const std::vector<std::uint8_t> &bytes, std::size_t at)
{
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= static_cast<std::uint32_t>(bytes[at + i]) << (8 * i);
    return value;
}

/** A file with every type of record in several blocks. */
std::vector<std::uint8_t> specimen(int blocks = 3)
{
    const scratch_folder folder;
    rank_file file(folder, 1, 4);
    const int local[] = {1, 0};
    const int remote[] = {2, -1};
    zct_write_communicator(&file, local, 2, remote, 2);
    for (int b = 0; b < blocks; b++) {
        for (int i = 0; i < 5; i++) {
            file.send(100 * i, i % 4, i, 1000u * static_cast<unsigned>(i));
            file.receive(50 * i, 100 * i, i % 4, i, 8, 4096u * static_cast<unsigned>(i));
        }
        const std::uint64_t probed = zct_writer_begin(&file);
        const std::uint64_t order = zct_writer_begin(&file);
        const zct_receive matched = {1, 2, order, probed, 1, 1, 4, 5, 6};
        zct_write_receive(&file, &matched);
        zct_write_lost(&file, zct_writer_begin(&file), 0, -1, -1);
        const std::uint64_t call =
            zct_write_collective(&file, 900, zct_writer_begin(&file), ZCT_ALLGATHER, 0, -1);
        const zct_run send = {ZCT_RUN_SEND, 2, 2, 8, 0, 0};
        const zct_run receive = {ZCT_RUN_RECEIVE, 0, 4, 8, 0x1000, 16};
        zct_write_run(&file, &send);
        zct_write_run(&file, &receive);
        zct_write_collective_ready(&file);
        zct_write_collective_end(&file, 950, call);
        zct_writer_flush(&file);
    }
    file.close();
    return bytes_of(folder.file(1));
}

/** Where the blocks begin; the last entry is the end of the file. */
std::vector<std::size_t> block_starts(const std::vector<std::uint8_t> &bytes)
{
    std::vector<std::size_t> starts = {16 + u32_at(bytes, 12) + 4};
    while (starts.back() < bytes.size())
        starts.push_back(starts.back() + 8 + u32_at(bytes, starts.back()));
    return starts;
}

std::string error_of(const std::vector<std::uint8_t> &bytes)
{
    try {
        decode_records(bytes, "file");
    } catch (const error &e) {
        return e.what();
    }
    return "";
}

/** Makes damage that the checksum does not see. */
void sign(std::vector<std::uint8_t> &bytes, std::size_t block)
{
    std::uint32_t crc = zc_crc32c(0, &bytes[block], 4);
    crc = zc_crc32c(crc, &bytes[block + 8], u32_at(bytes, block));
    put_u32(bytes, block + 4, crc);
}

TEST(RecordTest, LosesOneBlockWhereverItIsCut)
{
    const std::vector<std::uint8_t> whole = specimen();
    const std::vector<std::size_t> starts = block_starts(whole);
    ASSERT_EQ(starts.size(), 5u); /* three, and one for the end */
    for (std::size_t len = starts[0]; len < whole.size(); len++) {
        const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<long>(len));
        const file_records file = decode_records(cut, "file");
        std::size_t kept = 0;
        while (starts[kept + 1] <= len)
            kept++;
        ASSERT_EQ(file.sends.size(), 5 * std::min<std::size_t>(kept, 3)) << len;
        ASSERT_EQ(file.cut_bytes, len - starts[kept]) << len;
        ASSERT_FALSE(file.complete);
    }
    EXPECT_TRUE(decode_records(whole, "file").complete);
}

TEST(RecordTest, RefusesAFileCutInItsHeader)
{
    const std::vector<std::uint8_t> whole = specimen();
    const std::size_t header = block_starts(whole)[0];
    for (std::size_t len = 8; len < header; len++) {
        const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<long>(len));
        ASSERT_EQ(error_of(cut), "file: ends inside its header") << len;
    }
    EXPECT_EQ(error_of({}), "file: not a zc-trace file");
    EXPECT_EQ(error_of({0x89, 'Z'}), "file: not a zc-trace file");
}

TEST(RecordTest, RefusesOtherFiles)
{
    std::vector<std::uint8_t> bytes = specimen();
    bytes[1] = 'X';
    EXPECT_EQ(error_of(bytes), "file: not a zc-trace file");
}

TEST(RecordTest, RefusesAnotherVersion)
{
    std::vector<std::uint8_t> bytes = specimen();
    bytes[8] = 4;
    EXPECT_EQ(error_of(bytes),
              "file: written by another version of zc-trace; this one reads versions 1 to 3");
}

TEST(RecordTest, RefusesADamagedHeader)
{
    std::vector<std::uint8_t> bytes = specimen();
    bytes[20] ^= 1;
    EXPECT_EQ(error_of(bytes), "file: its header is damaged");
    put_u32(bytes, 12, 0xffffffff);
    EXPECT_EQ(error_of(bytes), "file: its header is damaged");
}

TEST(RecordTest, TellsDamageInTheMiddleFromACutEnd)
{
    const std::vector<std::uint8_t> whole = specimen();
    const std::vector<std::size_t> starts = block_starts(whole);
    std::vector<std::uint8_t> bytes = whole;
    bytes[starts[1] + 12] ^= 0x10;
    EXPECT_EQ(error_of(bytes), "file: a block in the middle is damaged");
    bytes = whole;
    bytes[starts[3] + 9] ^= 0x10; /* the last one: as if it had been cut */
    const file_records file = decode_records(bytes, "file");
    EXPECT_EQ(file.sends.size(), 15u);
    EXPECT_FALSE(file.complete);
}

/** A file of rank 0 of some processes with one block, of these records. */
std::vector<std::uint8_t> file_of(std::uint32_t processes, const std::vector<std::uint8_t> &records)
{
    const scratch_folder folder;
    const zct_head head = {0, processes, 7, 0, "some MPI", "program", "program", "host", false};
    zct_writer writer;
    EXPECT_EQ(zct_writer_open(&writer, folder.file(0).c_str(), &head), 0);
    zct_writer_close(&writer, false);
    std::vector<std::uint8_t> bytes = bytes_of(folder.file(0));
    const std::size_t block = bytes.size();
    bytes.resize(block + ZCT_BLOCK_HEAD_BYTES);
    bytes.insert(bytes.end(), {0, 0, 0, 0}); /* the state */
    bytes.insert(bytes.end(), records.begin(), records.end());
    put_u32(bytes, block, static_cast<std::uint32_t>(bytes.size() - block - ZCT_BLOCK_HEAD_BYTES));
    sign(bytes, block);
    return bytes;
}

/* Sixteen million members, which the file has in some bytes a communicator. */
TEST(RecordTest, ReadsManyDuplicatesOfALargeWorld)
{
    constexpr std::int32_t kProcesses = 4096;
    const scratch_folder folder;
    {
        rank_file file(folder, 0, kProcesses);
        std::vector<int> world(kProcesses);
        std::iota(world.begin(), world.end(), 0);
        for (int i = 0; i < kProcesses; i++)
            zct_write_communicator(&file, world.data(), world.size(), nullptr, 0);
        file.send(100, kProcesses - 1, 3, 8, kProcesses);
        file.close();
    }
    const file_records file = read_records(folder.file(0));
    ASSERT_EQ(file.communicators.size(), kProcesses + 1u);
    EXPECT_EQ(file.communicators[kProcesses].local.size(), std::size_t{kProcesses});
    EXPECT_EQ(file.communicators[kProcesses].local[kProcesses - 1], kProcesses - 1);
    EXPECT_EQ(load(folder.path()).communicators.size(), kProcesses + 1u);
}

TEST(RecordTest, RefusesMoreMembersThanTheWorldHas)
{
    const std::uint8_t announce = ZCT_COMMUNICATOR;
    EXPECT_EQ(error_of(file_of(4, {announce, 4, 0, 4})), "");
    EXPECT_EQ(error_of(file_of(4, {announce, 8, 0, 4, 7, 4})), /* 0 to 3, twice */
              "file: a communicator has more members than the world");
    /* Those outside the world, -1, come on top. */
    EXPECT_EQ(error_of(file_of(1, {announce, 3, 0, 1, 3, 1, 1, 1})), "");
}

TEST(RecordTest, RefusesAnImplausiblyLargeWorld)
{
    EXPECT_EQ(error_of(file_of(1u << 24, {})), "");
    EXPECT_EQ(error_of(file_of(0x7fffffff, {})), "file: an implausibly large world");
}

/* In every second place a block of 64 KiB could begin: the search for one ends some time. */
TEST(RecordTest, DoesNotSearchAMadeUpFileForever)
{
    const std::vector<std::uint8_t> whole = specimen();
    const std::size_t last = block_starts(whole)[3];
    std::vector<std::uint8_t> bytes(whole.begin(), whole.begin() + static_cast<long>(last));
    for (int i = 0; i < 1 << 18; i++)
        bytes.insert(bytes.end(), {1, 0});
    bytes.insert(bytes.end(), whole.begin() + static_cast<long>(last), whole.end());
    EXPECT_EQ(decode_records(bytes, "file").cut_bytes, bytes.size() - last);
}

TEST(RecordTest, RefusesBytesAfterTheEnd)
{
    std::vector<std::uint8_t> bytes = specimen();
    bytes.push_back(0);
    EXPECT_EQ(error_of(bytes), "file: bytes after the end of the trace");
}

TEST(RecordTest, RefusesBlocksOutOfOrder)
{
    const std::vector<std::uint8_t> whole = specimen();
    const std::vector<std::size_t> s = block_starts(whole);
    std::vector<std::uint8_t> bytes(whole.begin(), whole.begin() + static_cast<long>(s[1]));
    bytes.insert(bytes.end(), whole.begin() + static_cast<long>(s[2]), whole.end());
    EXPECT_EQ(error_of(bytes), "file: blocks are missing or out of order");
}

TEST(RecordTest, NamesAFileThatCannotBeRead)
{
    const scratch_folder folder;
    EXPECT_THROW(
        {
            try {
                read_records(folder.file(0));
            } catch (const error &e) {
                EXPECT_EQ(std::string(e.what()),
                          folder.file(0).string() + ": No such file or directory");
                throw;
            }
        },
        error);
    EXPECT_THROW(read_records(folder.path()), error);
}

/* Any flipped bits: an error or a shorter trace, never another trace. */
TEST(RecordTest, SurvivesFlippedBits)
{
    const std::vector<std::uint8_t> whole = specimen();
    const file_records intact = decode_records(whole, "file");
    std::mt19937 random(3);
    for (int i = 0; i < 20000; i++) {
        std::vector<std::uint8_t> bytes = whole;
        for (auto flips = 1 + random() % 4; flips; flips--)
            bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
        try {
            const file_records file = decode_records(bytes, "file");
            ASSERT_LE(file.sends.size(), intact.sends.size());
            for (std::size_t s = 0; s < file.sends.size(); s++)
                ASSERT_EQ(file.sends[s].bytes, intact.sends[s].bytes);
        } catch (const error &) {
        }
    }
}

/* The same where the checksum is right: what a faulty writer could produce. */
TEST(RecordTest, SurvivesDamageBehindARightChecksum)
{
    const std::vector<std::uint8_t> whole = specimen();
    const std::vector<std::size_t> starts = block_starts(whole);
    std::mt19937 random(4);
    int decoded = 0;
    for (int i = 0; i < 50000; i++) {
        std::vector<std::uint8_t> bytes = whole;
        const std::size_t b = random() % (starts.size() - 1);
        const std::size_t room = starts[b + 1] - starts[b] - 8;
        for (auto changes = 1 + random() % 3; changes; changes--)
            bytes[starts[b] + 8 + random() % room] = static_cast<std::uint8_t>(random());
        sign(bytes, starts[b]);
        try {
            decode_records(bytes, "file");
            decoded++;
        } catch (const error &) {
        }
    }
    EXPECT_GT(decoded, 0);
}

/* Random bytes as records of a valid block; then the rows of it. */
TEST(RecordTest, SurvivesRandomRecords)
{
    const std::vector<std::uint8_t> whole = specimen(1);
    const std::size_t first = block_starts(whole)[0];
    const scratch_folder folder;
    std::mt19937 random(5);
    for (int i = 0; i < 20000; i++) {
        std::vector<std::uint8_t> bytes(whole.begin(), whole.begin() + static_cast<long>(first));
        const std::size_t len = 5 + random() % 60;
        bytes.resize(first + 8 + len);
        put_u32(bytes, first, static_cast<std::uint32_t>(len));
        for (std::size_t at = first + 8; at < bytes.size(); at++)
            bytes[at] = static_cast<std::uint8_t>(random() % 2 ? random() % 8 : random());
        /* state, and a world to send in */
        const std::uint8_t start[] = {0, 0, 0, 0, ZCT_COMMUNICATOR, 4, 0, 4};
        std::copy(start, start + std::min(sizeof(start), len),
                  bytes.begin() + static_cast<long>(first) + 8);
        sign(bytes, first);
        try {
            decode_records(bytes, "file");
            if (i % 20 == 0) {
                write_bytes(folder.file(1), bytes);
                load(folder.path());
            }
        } catch (const error &) {
        }
    }
}

/* Of a clock that ran some thousand times too fast, and a time far behind that. */
TEST(RecordTest, RefusesClocksThatAreImplausiblyFarApart)
{
    const scratch_folder folder;
    rank_file file(folder, 0, 1, 7, true);
    zct_write_site(&file, 1, 1, "", "");
    zct_write_clock(&file, 0, 0, 0);
    file.send(std::int64_t{1} << 50, 0, 3, 8);
    zct_write_clock(&file, (std::int64_t{1} << 50) + 1, INT64_MAX, 0);
    file.send(std::int64_t{1} << 60, 0, 3, 8);
    file.close();
    EXPECT_THROW(read_records(folder.file(0)), zc::zct::error);
}

} // namespace
