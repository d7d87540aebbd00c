/* SPDX-License-Identifier: BSD-3-Clause */
#include <cstdlib>

#include <gtest/gtest.h>

#include "host_name.h"
#include "job_name.h"

namespace zc::holder {
namespace {

std::string of_nothing(const char *)
{
    return "";
}

std::string of_hydra(const char *name)
{
    const std::string wanted = name;
    return wanted == "PMI_RANK" ? "3" : wanted == "PMI_SIZE" ? "8" : "";
}

/** Below mpiexec in a job of Slurm: the rank is Hydra's. */
std::string of_both(const char *name)
{
    const std::string wanted = name;
    return wanted == "SLURM_JOB_ID"    ? "77"
           : wanted == "SLURM_STEP_ID" ? "2"
           : wanted == "SLURM_PROCID"  ? "0"
           : wanted == "SLURM_NTASKS"  ? "2"
                                       : of_hydra(name);
}

const std::vector<std::string> kProxy = {"hydra_pmi_proxy", "--control-port", "h1:41234",
                                         "--proxy-id", "1"};

TEST(JobNameTest, IsThatOfHydraOnAllHosts)
{
    const rank_of_job one = describe_rank("", "", kProxy, of_hydra);
    EXPECT_EQ(one.job, "h1:41234");
    EXPECT_EQ(one.rank, "3");
    EXPECT_EQ(one.size, 8);
    EXPECT_TRUE(one.has_launcher);
    /* Two mpiexec of one job of Slurm are two jobs. */
    EXPECT_EQ(describe_rank("", "", kProxy, of_both).job, "h1:41234");
    EXPECT_EQ(describe_rank("", "", kProxy, of_both).rank, "3");
}

TEST(JobNameTest, IsThatOfSlurmsStep)
{
    EXPECT_EQ(describe_rank("", "", {}, of_both).job, "77.2");
}

TEST(JobNameTest, IsWhatTheUserSays)
{
    EXPECT_EQ(describe_rank("mine", "", kProxy, of_both).job, "mine");
}

TEST(JobNameTest, IsTheProcessWithoutALauncher)
{
    const rank_of_job one =
        describe_rank("", "", {"hydra_pmi_proxy", "--control-port"}, of_nothing);
    EXPECT_EQ(one.job, host_name() + "-" + std::to_string(getpid()));
    EXPECT_EQ(one.rank, "0");
    EXPECT_EQ(one.size, 0);
    EXPECT_FALSE(one.has_launcher);
}

/** Those that one mpiexec has started wait at different ports, and belong together. */
TEST(JobNameTest, OfASpawnedWorldBeginsWithTheFirst)
{
    const rank_of_job one = describe_rank("", "h1:40000", kProxy, of_hydra);
    EXPECT_EQ(one.job, "h1:40000+h1:41234");
    EXPECT_EQ(one.first, "h1:40000");
    EXPECT_EQ(describe_rank("", "mine", {}, of_both).job, "mine+77.2");
    EXPECT_EQ(describe_rank("own", "mine", kProxy, of_hydra).job, "own");
    EXPECT_EQ(describe_rank("own", "mine", kProxy, of_hydra).first, "mine");
    EXPECT_EQ(describe_rank("", "", kProxy, of_hydra).first, "h1:41234");
    EXPECT_EQ(describe_rank("mine", "", kProxy, of_hydra).first, "mine");
}

} // namespace
} // namespace zc::holder
