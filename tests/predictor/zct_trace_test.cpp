/* SPDX-License-Identifier: BSD-3-Clause */
#include "zct_trace.h"

#include <gtest/gtest.h>

#include "support.h" /* of the tests of zc-trace */

using namespace zc::report;
using namespace zc::zct::test;

namespace {

TEST(ZctTraceTest, ReadsWhatZcTraceWrote)
{
    scratch_folder folder;
    {
        rank_file receiver(folder, 0, 2);
        rank_file sender(folder, 1, 2);
        sender.send(100, 0, 5, 65536);
        sender.send(900, 0, 5, 4096);
        receiver.receive(300, 400, 1, 5, 65536, 0x7f0000000010);
        receiver.receive(500, 1000, 1, 5, 4096, 0x7f0000002010);
        receiver.close();
        sender.close();
    }
    ASSERT_TRUE(is_zct_trace(folder.path()));
    const auto traces = load_traces(folder.path().string());
    ASSERT_EQ(2u, traces.size());
    const trace &trace = traces[0];
    EXPECT_EQ(0, trace.rank);
    EXPECT_EQ("", trace.note);
    ASSERT_EQ(2u, trace.receives.size());
    const traced_receive &first = trace.receives[0];
    EXPECT_EQ(1, first.receive.envelope.source);
    EXPECT_EQ(5, first.receive.envelope.tag);
    EXPECT_EQ(65536u, first.receive.envelope.bytes);
    EXPECT_EQ(0x7f0000000010u, first.receive.addr);
    EXPECT_TRUE(first.unexpected());
    EXPECT_FALSE(trace.receives[1].unexpected());
}

TEST(ZctTraceTest, AMessageOfAnUnknownSenderIsNoQuery)
{
    scratch_folder folder;
    {
        rank_file receiver(folder, 0, 2);
        receiver.receive(300, 400, 1, 5, 65536, 0x7f0000000010);
        receiver.close();
    }
    const auto traces = load_traces(folder.file(0).string());
    ASSERT_EQ(1u, traces.size());
    ASSERT_EQ(1u, traces[0].receives.size());
    EXPECT_FALSE(traces[0].receives[0].unexpected());
}

TEST(ZctTraceTest, SaysThatARecordingEndsEarly)
{
    scratch_folder folder;
    {
        rank_file receiver(folder, 0, 2);
        receiver.receive(300, 400, 1, 5, 65536, 0x7f0000000010);
        receiver.close(false);
    }
    const auto traces = load_traces(folder.file(0).string());
    ASSERT_EQ(1u, traces.size());
    EXPECT_NE(std::string::npos, traces[0].note.find("rank 0 was not recorded to its end"));
}

TEST(ZctTraceTest, SaysWhichRanksCannotBeRead)
{
    scratch_folder folder;
    {
        rank_file receiver(folder, 1, 2);
        receiver.receive(300, 400, 0, 5, 65536, 0x7f0000000010);
        receiver.close();
    }
    write_bytes(folder.file(0), {});
    const auto traces = load_traces(folder.path().string());
    ASSERT_EQ(1u, traces.size());
    EXPECT_EQ(1, traces[0].rank);
    EXPECT_NE(std::string::npos, traces[0].note.find("r0.zct: not a zc-trace file"));
}

TEST(ZctTraceTest, RefusesADamagedFile)
{
    scratch_folder folder;
    {
        rank_file receiver(folder, 0, 2);
        receiver.close();
    }
    auto bytes = bytes_of(folder.file(0));
    bytes[20] ^= 0xff;
    write_bytes(folder.file(0), bytes);
    EXPECT_THROW(load_traces(folder.file(0).string()), trace_error);
}

} // namespace
