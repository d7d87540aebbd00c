/* SPDX-License-Identifier: BSD-3-Clause */

/* What zcmd does where there are more agents than a process has descriptors. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include <gtest/gtest.h>

#include "transport.h"

namespace zc::agent {
namespace {

class AgentTransportTest : public testing::Test {
  protected:
    AgentTransportTest() { getrlimit(RLIMIT_NOFILE, &before_); }
    ~AgentTransportTest() override { setrlimit(RLIMIT_NOFILE, &before_); }
    /** To so many addresses at which nothing listens. */
    static void tell(transport &t, int agents)
    {
        for (int i = 0; i < agents; i++)
            t.send(i,
                   "tcp://127.0.0." + std::to_string(1 + i % 250) + ":" +
                       std::to_string(20000 + i / 250),
                   "x");
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

/** A connection to a port of this machine, by a peer that sends nothing. */
class silent {
  public:
    explicit silent(const std::string &endpoint)
        : fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0))
    {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port =
            htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connect(fd_, reinterpret_cast<sockaddr *>(&to), sizeof to);
    }
    ~silent() { close(fd_); }
    silent(const silent &) = delete;
    bool is_connected(int ms) const
    {
        pollfd p{fd_, POLLOUT, 0};
        return poll(&p, 1, ms) == 1 && (p.revents & POLLOUT) != 0 &&
               (p.revents & (POLLERR | POLLHUP)) == 0;
    }

  private:
    int fd_;
};

TEST_F(AgentTransportTest, StrangersDoNotUseUpTheDescriptors)
{
    constexpr std::size_t kMost = 20;
    key_pair keys = make_keys();
    transport t("tcp://127.0.0.1:*", keys, kMost);
    std::vector<std::unique_ptr<silent>> crowd;
    for (std::size_t i = 0; i < kMost; i++)
        crowd.push_back(std::make_unique<silent>(t.endpoint()));
    for (int i = 0; i < 400 && !t.is_full(); i++, usleep(10000))
        t.read_monitor();
    ASSERT_TRUE(t.is_full());
    EXPECT_EQ(t.inbound(), kMost);
    const silent late(t.endpoint());
    EXPECT_FALSE(late.is_connected(500));
    /* Peers that send nothing are disconnected, and those that wait are accepted. */
    bool full = true;
    for (int i = 0; i < 3000 && full; i++, usleep(10000)) {
        t.read_monitor();
        full = t.is_full();
    }
    EXPECT_FALSE(full);
    EXPECT_TRUE(late.is_connected(10000));
    std::string said;
    for (int i = 0; i < 1000 && !t.receive(said); i++, usleep(10000)) {
        t.send(kSecond + i, t.endpoint(), "one of us");
        t.answer_door();
        t.read_monitor();
    }
    EXPECT_EQ(said, "one of us");
}

TEST_F(AgentTransportTest, AnOccupiedPortIsExplained)
{
    const transport first("tcp://127.0.0.1:*", make_keys());
    try {
        transport second(first.endpoint(), make_keys());
        FAIL() << "two at one port";
    } catch (const transport_error &problem) {
        const std::string said = problem.what();
        EXPECT_NE(said.find(first.endpoint()), std::string::npos) << said;
        EXPECT_NE(said.find("Address already in use"), std::string::npos) << said;
        EXPECT_NE(said.find("agent.listen"), std::string::npos) << said;
    }
}

} // namespace
} // namespace zc::agent
