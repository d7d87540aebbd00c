/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <netinet/in.h>
#include <optional>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "descriptor.h"
#include "liveness_server.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

class LivenessServerTest : public testing::Test {
  protected:
    LivenessServerTest() { getrlimit(RLIMIT_NOFILE, &before_); }
    ~LivenessServerTest() override { setrlimit(RLIMIT_NOFILE, &before_); }

    void limit_descriptors(rlim_t most)
    {
        const rlimit limit = {most, before_.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    void begin()
    {
        unsigned patience = 0;
        server_.emplace(loop_, 61s);
        ASSERT_EQ(std::sscanf(server_->order().c_str(), "LIVES %" SCNu16 " %" SCNx64 " %u", &port_,
                              &token_, &patience),
                  3);
        EXPECT_EQ(patience, 61u);
    }
    descriptor connected()
    {
        descriptor made{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_port = htons(port_);
        inet_pton(AF_INET, "127.0.0.1", &where.sin_addr);
        EXPECT_EQ(connect(made.fd, reinterpret_cast<sockaddr *>(&where), sizeof where), 0);
        return made;
    }
    void turn_until(const std::function<bool()> &happens)
    {
        const auto end = std::chrono::steady_clock::now() + 30s;
        while (!happens()) {
            ASSERT_LT(std::chrono::steady_clock::now(), end);
            loop_.turn(10);
        }
    }
    /** What has come over @one before its end, while the server runs; nothing: no end has come. */
    std::optional<std::vector<char>> all_of(const descriptor &one)
    {
        std::vector<char> got;
        for (int turns = 0; turns < 50; turns++) {
            char byte;
            const ssize_t n = recv(one.fd, &byte, 1, MSG_DONTWAIT);
            if (n == 1)
                got.push_back(byte);
            else if (n == 0 || errno != EAGAIN)
                return got;
            if (n != 1)
                loop_.turn(10);
        }
        return {};
    }
    bool gets_token(const descriptor &one)
    {
        std::uint64_t token = 0;
        std::size_t got = 0;
        turn_until([&] {
            const ssize_t n = recv(one.fd, reinterpret_cast<char *>(&token) + got,
                                   sizeof token - got, MSG_DONTWAIT);
            got += n > 0 ? static_cast<std::size_t>(n) : 0;
            return got == sizeof token || n == 0;
        });
        return got == sizeof token && token == token_;
    }

    loop loop_;
    std::optional<liveness_server> server_;
    std::uint16_t port_ = 0;
    std::uint64_t token_ = 0;
    rlimit before_{};
};

TEST_F(LivenessServerTest, EachConnectionGetsTheTokenAndLastsAsLongAsTheServer)
{
    begin();
    const descriptor one = connected(), two = connected();
    EXPECT_TRUE(gets_token(one));
    EXPECT_TRUE(gets_token(two));
    EXPECT_EQ(server_->connections(), 2u);
    EXPECT_FALSE(all_of(one));
    server_.reset();
    const auto rest = all_of(one);
    ASSERT_TRUE(rest);
    EXPECT_TRUE(rest->empty());
    EXPECT_TRUE(all_of(two));
    loop_.turn(0); /* nothing of it is left there */
}

TEST_F(LivenessServerTest, WhatIsClosedIsForgotten)
{
    begin();
    descriptor one = connected();
    const descriptor two = connected();
    EXPECT_TRUE(gets_token(one));
    EXPECT_TRUE(gets_token(two));
    one = descriptor{};
    turn_until([&] { return server_->connections() == 1; });
    EXPECT_EQ(send(two.fd, "x", 1, 0), 1); /* nothing is to be said */
    turn_until([&] { return server_->connections() == 0; });
}

TEST_F(LivenessServerTest, AClientThatHasGoneBeforeItIsTaken)
{
    begin();
    for (int i = 0; i < 3; i++) {
        const linger now = {1, 0};
        const descriptor one = connected();
        setsockopt(one.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    const descriptor last = connected();
    EXPECT_TRUE(gets_token(last));
    turn_until([&] { return server_->connections() == 1; });
}

TEST_F(LivenessServerTest, HalfOfTheDescriptorsAreForOtherThings)
{
    limit_descriptors(64);
    begin();
    limit_descriptors(before_.rlim_cur);
    std::vector<descriptor> taken;
    for (int i = 0; i < 32; i++) {
        taken.push_back(connected());
        ASSERT_TRUE(gets_token(taken.back()));
    }
    const descriptor more = connected();
    const auto all = all_of(more);
    ASSERT_TRUE(all);
    EXPECT_TRUE(all->empty());
    EXPECT_EQ(server_->connections(), 32u);
    taken.pop_back();
    turn_until([&] { return server_->connections() == 31; });
    EXPECT_TRUE(gets_token(connected()));
}

TEST_F(LivenessServerTest, WhereThereAreNoDescriptorsLeftItWaitsUntilAClientHasGone)
{
    begin();
    descriptor one = connected();
    EXPECT_TRUE(gets_token(one));
    const descriptor two = connected();
    const int next = dup(two.fd);
    close(next);
    limit_descriptors(static_cast<rlim_t>(next)); /* none above the last is free */
    EXPECT_FALSE(all_of(two));                    /* nothing comes, and it does not end */
    EXPECT_EQ(server_->connections(), 1u);
    const auto before = std::chrono::steady_clock::now();
    loop_.turn(100);
    EXPECT_GE(std::chrono::steady_clock::now() - before, 50ms) << "the loop does not sleep";
    limit_descriptors(before_.rlim_cur);
    EXPECT_FALSE(all_of(two));
    one = descriptor{};
    turn_until([&] { return server_->connections() == 0; });
    EXPECT_TRUE(gets_token(two));
    EXPECT_EQ(server_->connections(), 1u);
}

} // namespace
} // namespace zc::holder
