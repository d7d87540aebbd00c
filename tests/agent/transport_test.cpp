/* SPDX-License-Identifier: BSD-3-Clause */

/* What zcmd does where there are more agents than a process has descriptors. */
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "transport.h"

namespace zc::agent {
namespace {

class AgentTransportTest : public testing::Test {
  protected:
    AgentTransportTest() { getrlimit(RLIMIT_NOFILE, &before_); }
    ~AgentTransportTest() override { setrlimit(RLIMIT_NOFILE, &before_); }
    /** To so many addresses at which nobody listens. */
    static void tell(transport &t, int agents)
    {
        for (int i = 0; i < agents; i++)
            t.send(i, "tcp://127.0.0." + std::to_string(1 + i % 250) + ":" + std::to_string(20000 + i / 250), "x");
    }
    rlimit before_{};
};

TEST_F(AgentTransportTest, ConnectionsAreLimited)
{
    rlimit most = before_;
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
    transport t("tcp://127.0.0.1:*", make_keys());
    tell(t, 1500);
    EXPECT_LE(t.connections(), 400u);
    EXPECT_GE(t.connections(), 300u);
}

TEST_F(AgentTransportTest, WithoutDescriptorsItDropsAndGoesOn)
{
    rlimit few = before_;
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
    key_pair keys = make_keys();
    transport t("tcp://127.0.0.1:*", keys);
    tell(t, 300);
    EXPECT_GT(t.dropped(), 0u);
    EXPECT_LE(t.connections(), 64u);
    setrlimit(RLIMIT_NOFILE, &before_);
    std::string said;
    for (int i = 0; i < 500 && !t.receive(said); i++) {
        t.send(kSecond * (2 + i), t.endpoint(), "still here");
        t.answer_door();
        usleep(10000);
    }
    EXPECT_EQ(said, "still here");
}

} // namespace
} // namespace zc::agent
