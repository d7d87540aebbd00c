/* SPDX-License-Identifier: BSD-3-Clause */
#include "process_tree.h"

#include <algorithm>
#include <atomic>

#include <gtest/gtest.h>

#include "forked.h"

namespace zc::holder {
namespace {

/** A process that has a child, which has one, which is in a session of its own. */
class ProcessTreeTest : public ::testing::Test {
  protected:
    ~ProcessTreeTest() override
    {
        for (const pid_t each : {child_->load(), grandchild_->load()})
            kill(each, SIGKILL);
    }
    static std::atomic<pid_t> *shared()
    {
        return reinterpret_cast<std::atomic<pid_t> *>(pages_of_memory(1, MAP_SHARED));
    }
    static bool runs(pid_t pid)
    {
        const std::vector<pid_t> found = tree_of(pid);
        return std::count(found.begin(), found.end(), pid) == 1;
    }

    std::atomic<pid_t> *child_ = shared(), *grandchild_ = shared();
    forked first_{[this] {
        if (fork() == 0) {
            *child_ = getpid();
            if (fork() == 0) {
                setsid();
                *grandchild_ = getpid();
            }
            for (;;)
                pause();
        }
        while (*grandchild_ == 0)
            usleep(1000);
    }};
};

TEST_F(ProcessTreeTest, FindsWhatAProcessHasStarted)
{
    const std::vector<pid_t> found = tree_of(first_.pid());
    std::vector<pid_t> expected = {first_.pid(), *child_, *grandchild_};
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(found, expected);
}

TEST_F(ProcessTreeTest, EndsAllOfThem)
{
    end_tree(first_.pid());
    EXPECT_FALSE(runs(first_.pid()));
    EXPECT_FALSE(runs(*child_));
    EXPECT_FALSE(runs(*grandchild_));
}

} // namespace
} // namespace zc::holder
