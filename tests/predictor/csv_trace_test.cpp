/* SPDX-License-Identifier: BSD-3-Clause */
#include "csv_trace.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace zc::report;
namespace fs = std::filesystem;

namespace {

const std::string kHeading = "i,comm,src,tag,bytes,addr,kind,coll,t_post,t_done,t_sent,done_order,"
                             "arrival_order\n";

/** A folder of its own, gone afterwards. */
class CsvTraceTest : public testing::Test {
  protected:
    void SetUp() override
    {
        const auto *test = testing::UnitTest::GetInstance()->current_test_info();
        folder_ = fs::path(testing::TempDir()) / (std::string("zcp-") + test->name());
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    fs::path file(const std::string &content, const std::string &name = "r3.csv") const
    {
        std::ofstream(folder_ / name, std::ios::binary) << content;
        return folder_ / name;
    }
    fs::path gzip(const std::string &content) const
    {
        const fs::path path = folder_ / "r3.csv.gz";
        gzFile out = gzopen(path.c_str(), "wb");
        gzwrite(out, content.data(), static_cast<unsigned>(content.size()));
        gzclose(out);
        return path;
    }
    /** What the loader says of a file it refuses. */
    static std::string complaint(const fs::path &path)
    {
        try {
            load_csv_trace(path);
        } catch (const trace_error &error) {
            return error.what();
        }
        return "";
    }

    fs::path folder_;
};

TEST_F(CsvTraceTest, ReadsEveryField)
{
    const trace trace =
        load_csv_trace(gzip(kHeading + "0,7,2,-1,65536,7fffffffdf60,bcast,0,100,120,90,0,5\n"));
    EXPECT_EQ(3, trace.rank);
    EXPECT_EQ(folder_.filename().string(), trace.run);
    ASSERT_EQ(1u, trace.receives.size());
    const traced_receive &r = trace.receives[0];
    EXPECT_EQ(7u, r.receive.envelope.comm);
    EXPECT_EQ(2, r.receive.envelope.source);
    EXPECT_EQ(-1, r.receive.envelope.tag);
    EXPECT_EQ(65536u, r.receive.envelope.bytes);
    EXPECT_EQ(0x7fffffffdf60u, r.receive.addr);
    EXPECT_EQ(100, r.posted);
    EXPECT_EQ(90, r.sent);
    EXPECT_EQ(5u, r.arrival);
    EXPECT_TRUE(r.unexpected());
}

TEST_F(CsvTraceTest, TakesColumnsInAnyOrderAndFindsArrivalsItself)
{
    const trace trace = load_csv_trace(
        file("t_sent,addr,bytes,tag,src,comm,t_post\r\n20,0x10,1,2,3,4,30\r\n10,20,1,2,3,4,30"));
    ASSERT_EQ(2u, trace.receives.size());
    EXPECT_EQ(0x10u, trace.receives[0].receive.addr);
    EXPECT_EQ((std::vector<size_t>{1, 0}), trace.arrival_order());
}

TEST_F(CsvTraceTest, NamesAMissingColumn)
{
    const fs::path path = file("i,comm,src,tag,bytes,kind,t_post,t_sent\n");
    EXPECT_EQ(path.string() + ":1: no column \"addr\"", complaint(path));
}

TEST_F(CsvTraceTest, NamesTheLineOfABadNumber)
{
    const std::string good = "0,0,2,1,64,10,p2p,-1,1,2,3,0,0\n";
    for (const char *bad : {"0,0,2,1,6x4,10,p2p,-1,1,2,3,0,0\n", "0,0,2,1,,10,p2p,-1,1,2,3,0,0\n",
                            "0,0,2,1,-64,10,p2p,-1,1,2,3,0,0\n",
                            "0,0,2,1,99999999999999999999,10,p2p,-1,1,2,3,0,0\n"}) {
        const fs::path path = file(kHeading + good + bad);
        EXPECT_TRUE(complaint(path).starts_with(path.string() + ":3: column \"bytes\": bad number"))
            << complaint(path);
    }
}

TEST_F(CsvTraceTest, RefusesALineOfOtherLength)
{
    const fs::path path = file(kHeading + "0,0,2,1,64,10,p2p\n");
    EXPECT_EQ(path.string() + ":2: 7 fields where the first line has 13", complaint(path));
}

TEST_F(CsvTraceTest, RefusesAWildcardSender)
{
    const fs::path path = file(kHeading + "0,0,-2,1,64,10,p2p,-1,1,2,3,0,0\n");
    EXPECT_NE(std::string::npos, complaint(path).find(":2: column \"src\""));
}

TEST_F(CsvTraceTest, NoticesTruncatedGzip)
{
    std::string content = kHeading;
    for (int i = 0; i < 5000; i++)
        content += std::to_string(i) + ",0,2,1," + std::to_string(i * 7919 % 10007) +
                   ",10,p2p,-1,1,2,3,0,0\n";
    const fs::path path = gzip(content);
    fs::resize_file(path, fs::file_size(path) / 2);
    EXPECT_NE(std::string::npos, complaint(path).find("gzip data ends too early"))
        << complaint(path);
}

TEST_F(CsvTraceTest, NoticesDamagedGzip)
{
    std::string content = kHeading;
    for (int i = 0; i < 5000; i++)
        content += std::to_string(i) + ",0,2,1,64,10,p2p,-1,1,2,3,0,0\n";
    const fs::path path = gzip(content);
    std::fstream raw(path, std::ios::in | std::ios::out | std::ios::binary);
    raw.seekp(static_cast<std::streamoff>(fs::file_size(path) / 2));
    raw << "damage";
    raw.close();
    EXPECT_NE("", complaint(path));
}

TEST_F(CsvTraceTest, RefusesAnEmptyFileAndNone)
{
    EXPECT_NE(std::string::npos, complaint(file("")).find("empty file"));
    EXPECT_NE(std::string::npos, complaint(folder_ / "r9.csv").find("No such file"));
}

TEST_F(CsvTraceTest, KnowsItsFilesByName)
{
    for (const char *name : {"r0.csv", "r12.csv.gz", "/a/b/r3.csv"})
        EXPECT_TRUE(is_csv_trace(name)) << name;
    for (const char *name : {"r.csv", "events.csv.gz", "r1x.csv", "r-1.csv", "meta.json", "r1.gz"})
        EXPECT_FALSE(is_csv_trace(name)) << name;
}

TEST_F(CsvTraceTest, AFolderHoldsOneRunOrMany)
{
    for (const char *run : {"b", "a"}) {
        fs::create_directories(folder_ / run);
        file(kHeading, std::string(run) + "/r10.csv");
        file(kHeading, std::string(run) + "/r9.csv");
        file("{}", std::string(run) + "/meta.json");
    }
    const auto traces = load_traces(folder_.string());
    ASSERT_EQ(4u, traces.size());
    EXPECT_EQ("a", traces[0].run);
    EXPECT_EQ(9, traces[0].rank);
    EXPECT_EQ(10, traces[1].rank);
    EXPECT_EQ(2u, load_traces((folder_ / "b").string()).size());
    EXPECT_THROW(load_traces((folder_ / "c").string()), trace_error);
}

} // namespace
