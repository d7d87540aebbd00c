/* SPDX-License-Identifier: BSD-3-Clause */
#include "zch/rank_traffic.h"

#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "error.h"
#include "forked.h"
#include "zch/rank_mark.h"

namespace zc::holder {
namespace {

namespace fs = std::filesystem;

/** The memory of a rank that tells, as the netmod has it. */
class told {
  public:
    explicit told(int fd)
    {
        at_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        EXPECT_NE(at_, MAP_FAILED);
    }
    ~told() { munmap(at_, kBytes); }
    told(const told &) = delete;
    told &operator=(const told &) = delete;
    traffic_header &header() { return *static_cast<traffic_header *>(at_); }
    void send(std::uint32_t receiver, std::uint32_t kib)
    {
        auto *const ring = reinterpret_cast<traffic_entry *>(&header() + 1);
        const std::uint64_t nth = header().sent;
        ring[nth % kTrafficEntries] = {nth, receiver, kib};
        __atomic_store_n(&header().sent, nth + 1, __ATOMIC_RELEASE);
    }
    void send_many(std::uint64_t count)
    {
        for (std::uint64_t i = 0; i < count; i++)
            send(1, 1);
    }

  private:
    static constexpr std::size_t kBytes =
        sizeof(traffic_header) + kTrafficEntries * sizeof(traffic_entry);
    void *at_;
};

class RankTrafficTest : public testing::Test {
  protected:
    RankTrafficTest()
    {
        char name[] = "/tmp/rank-traffic-XXXXXX";
        folder_ = mkdtemp(name);
        setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
        whose_.job = "h1:41234";
        whose_.rank = 3;
        whose_.size = 8;
    }
    ~RankTrafficTest() override
    {
        unsetenv("XDG_RUNTIME_DIR");
        fs::remove_all(folder_);
    }
    std::set<std::string> files() const
    {
        std::set<std::string> found;
        for (const auto &entry : fs::recursive_directory_iterator(folder_)) {
            if (entry.is_regular_file())
                found.insert(entry.path().filename());
        }
        return found;
    }
    fs::path folder_;
    held_rank whose_;
};

TEST_F(RankTrafficTest, WhatIsSentIsReadOnceAndInOrder)
{
    traffic_reader reader(whose_);
    EXPECT_TRUE(reader.read().empty());
    EXPECT_FALSE(reader.is_told());
    traffic_file file(whose_);
    told rank(file.fd());
    EXPECT_TRUE(reader.read().empty());
    EXPECT_TRUE(reader.is_told());
    rank.send(5, 1024);
    rank.send(0, 1);
    auto found = reader.read();
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].receiver, 5u);
    EXPECT_EQ(found[0].kib, 1024u);
    EXPECT_EQ(found[1].receiver, 0u);
    EXPECT_EQ(found[1].time_ns, 1u);
    EXPECT_TRUE(reader.read().empty());
    rank.send(7, 2);
    EXPECT_EQ(reader.read().size(), 1u);
    EXPECT_EQ(reader.missed(), 0u);
}

TEST_F(RankTrafficTest, WhatIsOverwrittenIsCounted)
{
    traffic_reader reader(whose_);
    traffic_file file(whose_);
    told rank(file.fd());
    rank.send(5, 1);
    EXPECT_EQ(reader.read().size(), 1u);
    const std::uint64_t many = 10 * kTrafficEntries + 17;
    rank.send_many(many);
    const auto found = reader.read();
    /* The entry that the rank may be writing is left to it. */
    EXPECT_EQ(found.size(), kTrafficEntries - 1);
    EXPECT_EQ(found.back().time_ns, many);
    EXPECT_EQ(found.size() + reader.missed(), many);
    for (std::size_t i = 1; i < found.size(); i++)
        ASSERT_EQ(found[i].time_ns, found[i - 1].time_ns + 1);
}

TEST_F(RankTrafficTest, WritesOfARankDoNotTearWhatIsRead)
{
    traffic_file file(whose_);
    told rank(file.fd());
    const forked process([] {},
                         [&] {
                             const std::uint64_t nth = rank.header().sent;
                             rank.send(static_cast<std::uint32_t>(nth % 8),
                                       static_cast<std::uint32_t>(nth));
                         });
    traffic_reader reader(whose_);
    std::uint64_t read = 0;
    for (int i = 0; i < 20'000 && read < 1'000'000; i++) {
        for (const traffic_entry &each : reader.read()) {
            ASSERT_EQ(each.receiver, each.time_ns % 8);
            ASSERT_EQ(each.kib, static_cast<std::uint32_t>(each.time_ns));
            read++;
        }
    }
    EXPECT_GT(read, 0u);
}

TEST_F(RankTrafficTest, IsForItsUserAloneAndIsRemoved)
{
    {
        const traffic_file file(whose_);
        struct stat found;
        ASSERT_EQ(stat(file.path().c_str(), &found), 0);
        EXPECT_EQ(found.st_mode & 0777, 0600u);
        EXPECT_GE(found.st_blocks * 512, static_cast<off_t>(kTrafficEntries * 16));
        EXPECT_EQ(files().size(), 1u);
    }
    EXPECT_TRUE(files().empty());
}

/* As on hosts that share the folder, while a rank moves. */
TEST_F(RankTrafficTest, TheNewerOfTwoCountsAndTheOlderLeavesIt)
{
    auto older = std::make_unique<traffic_file>(whose_);
    traffic_reader reader(whose_);
    told before(older->fd());
    before.send(1, 1);
    EXPECT_EQ(reader.read().size(), 1u);
    const traffic_file newer(whose_);
    told after(newer.fd());
    after.send(2, 1);
    older.reset();
    const auto found = reader.read();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].receiver, 2u);
    EXPECT_EQ(files().size(), 1u);
}

TEST_F(RankTrafficTest, WhatAKilledProcessHasLeftIsNotReadAndIsRemoved)
{
    {
        std::optional<traffic_file> its;
        const forked process([&] {
            its.emplace(whose_);
            told(its->fd()).send(1, 1);
        });
        traffic_reader reader(whose_);
        EXPECT_EQ(reader.read().size(), 1u);
    } /* it is killed */
    EXPECT_EQ(files().size(), 1u);
    traffic_reader reader(whose_);
    EXPECT_TRUE(reader.read().empty());
    EXPECT_FALSE(reader.is_told());
    held_rank other = whose_;
    other.rank = 0;
    const traffic_file file(other);
    EXPECT_EQ(files().size(), 1u);
    EXPECT_TRUE(file.path().ends_with(".0"));
}

TEST_F(RankTrafficTest, WhatWasNeverWholeIsRemovedToo)
{
    const fs::path folder = fs::path(traffic_file(whose_).path()).parent_path();
    for (const char *name : {".traffic-young!", ".traffic-olden!", "other"})
        std::ofstream(folder / name) << "part";
    const timespec then[2] = {{1, 0}, {1, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder / ".traffic-olden!").c_str(), then, 0), 0);
    traffic_file::remove_left_over();
    EXPECT_EQ(files(), (std::set<std::string>{".traffic-young!", "other"}));
}

/* A rank whose program has set it. */
TEST_F(RankTrafficTest, ALimitOfTheSizeOfFilesIsAnError)
{
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit few{kTrafficEntries, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &few), 0);
    EXPECT_THROW(traffic_file{whose_}, error);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_TRUE(files().empty());
}

TEST_F(RankTrafficTest, WhatIsNoSuchFileIsNotRead)
{
    traffic_file file(whose_);
    told rank(file.fd());
    const traffic_header right = rank.header();
    const auto is_read = [&] {
        traffic_reader reader(whose_);
        reader.read();
        return reader.is_told();
    };
    EXPECT_TRUE(is_read());
    rank.header().magic++;
    EXPECT_FALSE(is_read());
    rank.header() = right;
    rank.header().entries *= 2;
    EXPECT_FALSE(is_read());
    rank.header() = right;
    rank.header().job++;
    EXPECT_FALSE(is_read());
    rank.header() = right;
    rank.header().rank++;
    EXPECT_FALSE(is_read());
    rank.header() = right;
    rank.header().world = 0;
    EXPECT_FALSE(is_read());
    rank.header() = right;
    ASSERT_EQ(truncate(file.path().c_str(), 100), 0);
    EXPECT_FALSE(is_read());
    fs::remove(file.path());
    fs::create_symlink("/etc/passwd", file.path());
    EXPECT_FALSE(is_read());
}

TEST_F(RankTrafficTest, ReceiversThatAreNoRanksAreLeftOut)
{
    traffic_file file(whose_);
    told rank(file.fd());
    rank.send(8, 1);
    rank.send(UINT32_MAX, 1);
    rank.send(7, 1);
    traffic_reader reader(whose_);
    EXPECT_EQ(reader.read().size(), 1u);
}

/* A number that goes back, as of a rank that writes nonsense. */
TEST_F(RankTrafficTest, ACountThatGoesBackIsNotFollowed)
{
    traffic_file file(whose_);
    told rank(file.fd());
    rank.send_many(10);
    traffic_reader reader(whose_);
    EXPECT_EQ(reader.read().size(), 10u);
    rank.header().sent = 3;
    EXPECT_TRUE(reader.read().empty());
    rank.header().sent = UINT64_MAX;
    EXPECT_LE(reader.read().size(), kTrafficEntries);
}

TEST_F(RankTrafficTest, NoFolderIsAnError)
{
    fs::create_directory(folder_ / "zcm");
    fs::permissions(folder_ / "zcm", fs::perms::all); /* open to others */
    EXPECT_THROW(traffic_file{whose_}, error);
}

TEST(JobNumberTest, IsOfTheName)
{
    EXPECT_EQ(number_of_job("h1:41234"), number_of_job("h1:41234"));
    EXPECT_NE(number_of_job("h1:41234"), number_of_job("h1:41235"));
    EXPECT_NE(number_of_job(""), 0u);
}

} // namespace
} // namespace zc::holder
