/* SPDX-License-Identifier: BSD-3-Clause */
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rank_files.h"

namespace zc::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kJob = 0xfeed;

class AgentRankFilesTest : public testing::Test {
  protected:
    AgentRankFilesTest()
    {
        char name[] = "/tmp/zca-profile-XXXXXX";
        directory_ = mkdtemp(name);
    }
    ~AgentRankFilesTest() override
    {
        zcm_profile_close(profile_, directory_.c_str());
        fs::remove_all(directory_);
    }
    /** A new profile. All ranks are said to be on one host. */
    static zcm_profile *make(const std::string &directory, std::uint32_t rank, std::uint32_t world)
    {
        zcm_profile *p = nullptr;
        EXPECT_EQ(zcm_profile_create(directory.c_str(), kJob, "heat", rank, world, world, &p), 0);
        const std::vector<std::uint32_t> host_of(world, 0);
        const char *name = "a";
        EXPECT_EQ(zcm_profile_world(p, 1, host_of.data(), &name, 1), 0);
        return p;
    }
    void create(std::uint32_t rank = 1, std::uint32_t world = 4)
    {
        profile_ = make(directory_, rank, world);
        ASSERT_NE(profile_, nullptr);
    }
    fs::path file() const { return fs::directory_iterator(directory_)->path(); }
    /** Nothing is left of it but refusals. */
    void expect_refused()
    {
        EXPECT_TRUE(files().read(1).empty());
        EXPECT_EQ(files_->refused(), 1u);
    }
    rank_files &files()
    {
        if (!files_)
            files_ = std::make_unique<rank_files>(directory_);
        return *files_;
    }

    std::string directory_;
    zcm_profile *profile_ = nullptr;
    std::unique_ptr<rank_files> files_;
};

TEST_F(AgentRankFilesTest, ReadsWhatTheRankTells)
{
    create();
    const std::uint32_t host_of[] = {0, 1, 1, 0};
    const char *names[] = {"a", "b"};
    ASSERT_EQ(zcm_profile_world(profile_, 7, host_of, names, 2), 0);
    zcm_profile_point(profile_, 100, 1000);
    zcm_profile_image(profile_, 4096);
    zcm_profile_flags(profile_, ZCM_PROFILE_MOVABLE);
    zcm_profile_sent(profile_, 2, 5000, 42);
    std::uint64_t start = profile_->counters.start_ns;
    auto found = files().read(start + 1'000'000'000);
    ASSERT_EQ(found.size(), 1u);
    zcm_profile_point(profile_, 150, 1000);
    zcm_profile_sent(profile_, 2, 6000, 43);
    found = files().read(start + 2'000'000'000);
    const rank_reading &r = found.at({kJob, 1});
    EXPECT_EQ(r.profile.iterations, 150u);
    EXPECT_EQ(r.profile.total_iterations, 1000u);
    EXPECT_NEAR(r.profile.iterations_per_s, 50, 1e-6);
    EXPECT_EQ(r.profile.epoch, 7u);
    EXPECT_EQ(r.profile.image_bytes, 4096u);
    EXPECT_NEAR(r.profile.elapsed_s, 2, 1e-6);
    EXPECT_TRUE(r.profile.movable);
    EXPECT_EQ(r.job_name, "heat");
    EXPECT_EQ(r.host_of, (std::vector<std::string>{"a", "b", "b", "a"}));
    ASSERT_EQ(r.events.size(), 1u); /* the first was read the first time */
    EXPECT_EQ(r.events[0].dst, 2u);
    EXPECT_EQ(r.events[0].time_ns, 43u);
    ASSERT_EQ(r.profile.flows.size(), 1u);
    EXPECT_EQ(r.profile.flows[0].peer, 2u);
    EXPECT_GT(r.profile.flows[0].bytes_per_s, 0);
}

/* Until then it says that its job has never been moved. */
TEST_F(AgentRankFilesTest, ARankIsThereWhenItHasToldItsWorld)
{
    ASSERT_EQ(zcm_profile_create(directory_.c_str(), kJob, "heat", 1, 2, 2, &profile_), 0);
    zcm_profile_sent(profile_, 0, 5000, 42);
    EXPECT_TRUE(files().read(1).empty());
    EXPECT_EQ(files().refused(), 0u);
    const std::uint32_t host_of[] = {0, 1};
    const char *names[] = {"a", "b"};
    ASSERT_EQ(zcm_profile_world(profile_, 2, host_of, names, 2), 0);
    const auto found = files().read(2);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found.at({kJob, 1}).profile.epoch, 2u);
    EXPECT_EQ(found.at({kJob, 1}).events.size(), 1u);
}

TEST_F(AgentRankFilesTest, CountsWhatWasOverwritten)
{
    create();
    files().read(1);
    for (std::uint32_t i = 0; i < ZCM_PROFILE_RING + 100; i++)
        zcm_profile_sent(profile_, 2, 1, i);
    auto found = files().read(ZCM_PROFILE_RING + 100);
    const rank_reading &r = found.at({kJob, 1});
    EXPECT_EQ(r.events.size() + r.events_missed, ZCM_PROFILE_RING + 100u);
    EXPECT_GE(r.events_missed, 100u);
    EXPECT_LE(r.events_missed, 102u);
    for (std::size_t i = 1; i < r.events.size(); i++)
        ASSERT_EQ(r.events[i].time_ns, r.events[i - 1].time_ns + 1);
}

/* The engine would wait until then. */
TEST_F(AgentRankFilesTest, ATimeThatIsYetToComeIsNow)
{
    create();
    files().read(1);
    zcm_profile_sent(profile_, 2, 1, UINT64_MAX);
    EXPECT_EQ(files().read(5).at({kJob, 1}).events.at(0).time_ns, 5u);
}

TEST_F(AgentRankFilesTest, MorePeersThanTheTableHoldsAreAddedUp)
{
    create(0, 1000);
    for (std::uint32_t peer = 1; peer < 1000; peer++)
        zcm_profile_sent(profile_, peer, 10, peer);
    std::uint64_t sum = profile_->counters.others_bytes;
    for (const zcm_profile_peer &p : profile_->peers)
        sum += p.bytes;
    EXPECT_EQ(sum, 9990u);
    EXPECT_EQ(files().read(1).size(), 1u);
}

/* A writer that never stops: what is read is always of one moment. */
TEST_F(AgentRankFilesTest, IsNeverTorn)
{
    create();
    std::atomic<bool> stop = false;
    std::thread writer([&] {
        for (std::uint64_t i = 1; !stop; i++) {
            zcm_profile_point(profile_, i, 2 * i);
            if (i % 64 == 0)
                std::this_thread::yield();
        }
    });
    int seen = 0;
    for (std::uint64_t t = 1; t < 200; t++) {
        auto found = files().read(t * 1'000'000);
        if (!found.contains({kJob, 1}))
            continue; /* the writer was too busy; the next second will do */
        seen++;
        const rank_profile &p = found.at({kJob, 1}).profile;
        EXPECT_EQ(p.total_iterations, 2 * p.iterations);
    }
    stop = true;
    writer.join();
    EXPECT_GT(seen, 0);
}

TEST_F(AgentRankFilesTest, RefusesAFileThatWasCut)
{
    create();
    fs::resize_file(file(), 1000);
    files();
    expect_refused();
    ASSERT_EQ(truncate(file().c_str(), static_cast<off_t>(profile_->size)), 0); /* for close() */
}

TEST_F(AgentRankFilesTest, RefusesNonsense)
{
    std::ofstream(directory_ + "/nonsense") << std::string(100'000, 'x');
    expect_refused();
}

TEST_F(AgentRankFilesTest, RefusesAHeaderThatLies)
{
    create();
    profile_->world = 3; /* the size does not agree */
    expect_refused();
    profile_->world = 4;
}

TEST_F(AgentRankFilesTest, RefusesAWriterThatDiedWriting)
{
    create();
    profile_->sequence = 1;
    expect_refused();
}

/** Whose number may long be another's. */
TEST_F(AgentRankFilesTest, RemovesWhatTheDeadLeft)
{
    pid_t child = fork();
    if (child == 0) {
        zcm_profile *its = nullptr;
        _exit(zcm_profile_create(directory_.c_str(), kJob, "heat", 1, 4, 4, &its) == 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    fs::path path = file();
    std::uint32_t mine = static_cast<std::uint32_t>(getpid());
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offsetof(zcm_profile, pid));
    file.write(reinterpret_cast<const char *>(&mine), sizeof mine);
    file.close();
    expect_refused();
    EXPECT_FALSE(fs::exists(path));
}

/** In a container of its own, say. */
TEST_F(AgentRankFilesTest, NumbersOfOtherNamespacesAreOfNoConcern)
{
    create();
    profile_->pid = 0x7fffffff; /* beyond pid_max */
    EXPECT_EQ(files().read(1).size(), 1u);
    EXPECT_EQ(files().untimed(), 1u);
    profile_->pid = 1; /* or another's number here */
    EXPECT_EQ(files().read(2).size(), 1u);
    EXPECT_EQ(files().untimed(), 1u);
}

/* This process writes the profile, and computes for a while. */
TEST_F(AgentRankFilesTest, TheKernelTellsTheProcessorTimeOfTheWriter)
{
    create();
    const auto ran_ns = [] {
        timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return t.tv_sec * 1'000'000'000L + t.tv_nsec;
    };
    const auto before = time_of_writer(*profile_, profile_->lock);
    ASSERT_TRUE(before);
    for (const long begin = ran_ns(); ran_ns() - begin < 50'000'000;)
        continue;
    const auto after = time_of_writer(*profile_, profile_->lock);
    ASSERT_TRUE(after);
    EXPECT_GT(after->ran_ns - before->ran_ns, 40'000'000u);
    EXPECT_LT(after->ran_ns - before->ran_ns, 200'000'000u);
    EXPECT_GE(after->waited_ns, before->waited_ns);
    files().read(1);
    EXPECT_EQ(files().untimed(), 0u);
}

TEST_F(AgentRankFilesTest, DoesNotFollowLinks)
{
    create();
    fs::path elsewhere = directory_ + "-elsewhere";
    fs::rename(file(), elsewhere);
    fs::create_symlink(elsewhere, directory_ + "/link");
    expect_refused();
    fs::remove(elsewhere);
}

TEST_F(AgentRankFilesTest, CloseRemovesTheFile)
{
    create();
    zcm_profile_close(profile_, directory_.c_str());
    profile_ = nullptr;
    EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(AgentRankFilesTest, CreateRefusesBadArguments)
{
    zcm_profile *p = nullptr;
    const char *d = directory_.c_str();
    EXPECT_EQ(zcm_profile_create(d, 0, "x", 0, 1, 1, &p), -EINVAL);
    EXPECT_EQ(zcm_profile_create(d, 1, "x", 1, 1, 1, &p), -EINVAL);
    EXPECT_EQ(zcm_profile_create(d, 1, "x", 0, 0, 1, &p), -EINVAL);
    EXPECT_EQ(zcm_profile_create(d, 1, "x", 0, 1, 0, &p), -EINVAL);
    EXPECT_EQ(zcm_profile_create(d, 1, std::string(64, 'n').c_str(), 0, 1, 1, &p), -EINVAL);
    EXPECT_EQ(p, nullptr);
}

TEST_F(AgentRankFilesTest, CreateRefusesADirectoryThatIsOpenToOthers)
{
    zcm_profile *p = nullptr;
    chmod(directory_.c_str(), 0755);
    EXPECT_EQ(zcm_profile_create(directory_.c_str(), 1, "x", 0, 1, 1, &p), -EPERM);
}

TEST_F(AgentRankFilesTest, WithoutAProfileNothingHappens)
{
    zcm_profile_sent(nullptr, 1, 1, 1);
    zcm_profile_point(nullptr, 1, 1);
    zcm_profile_mpi(nullptr, 1);
    zcm_profile_close(nullptr, nullptr);
}

TEST_F(AgentRankFilesTest, ReadsSeveralPlaces)
{
    char name[] = "/tmp/zca-profile-XXXXXX";
    const std::string other = mkdtemp(name);
    create(1);
    zcm_profile *second = make(other, 2, 4);
    ASSERT_NE(second, nullptr);
    rank_files all(std::vector<std::string>{directory_, "/nonexistent", other});
    const auto found = all.read(1);
    EXPECT_EQ(found.size(), 2u);
    EXPECT_TRUE(found.contains({kJob, 1}) && found.contains({kJob, 2}));
    EXPECT_EQ(all.refused(), 0u);
    zcm_profile_close(second, other.c_str());
    fs::remove_all(other);
}

} // namespace
} // namespace zc::agent
