/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a process that is away still lives, over TCP of this host. */
#include <arpa/inet.h>
#include <chrono>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include <mpidimpl.h>

extern "C" {
#include "zc_hosts.h"
#include "zc_liveness.h"
}

struct zc_test_process MPIR_Process;
struct zc_test_vci zc_test_vci;

namespace {

bool no_memory;
long later_ms; /* by which the clock that zc_liveness.c reads is ahead */
constexpr std::uint64_t kToken = 0x0123456789abcdef;
/** Of this host, and nothing else is bound to them. */
constexpr const char *kAddress = "127.0.0.2", *kAnother = "127.0.0.3";
constexpr int kSilence = 60;

std::vector<char> host(const char *address)
{
    std::vector<char> made(5, 4);
    inet_pton(AF_INET, address, &made[1]);
    return made;
}

std::vector<char> host6(const char *address)
{
    std::vector<char> made(17, 16);
    inet_pton(AF_INET6, address, &made[1]);
    return made;
}

/** A holder: it takes connections at one address. */
class taker {
  public:
    explicit taker(const char *address, in_port_t at = 0)
        : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_in where{};
        socklen_t length = sizeof where;
        where.sin_family = AF_INET;
        where.sin_port = at;
        inet_pton(AF_INET, address, &where.sin_addr);
        EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr *>(&where), sizeof where), 0);
        EXPECT_EQ(listen(socket_, 8), 0);
        getsockname(socket_, reinterpret_cast<sockaddr *>(&where), &length);
        port = where.sin_port;
    }
    ~taker() { end(); }
    taker(const taker &) = delete;
    taker &operator=(const taker &) = delete;
    /** Takes one, and sends so much of @token. */
    void take(std::uint64_t token = kToken, std::size_t bytes = sizeof kToken)
    {
        taken_.push_back(accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC));
        EXPECT_EQ(send(taken_.back(), &token, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    }
    /** Has the peer closed the last connection that was taken? */
    bool is_closed()
    {
        char byte;
        return recv(taken_.back(), &byte, 1, 0) == 0;
    }
    /** @option of TCP, or SO_KEEPALIVE, at the peer's end of the last that was taken: it is in this
     * process, too. */
    int of_peer(int level, int option)
    {
        sockaddr_in here{}, there{};
        socklen_t length = sizeof here;
        getsockname(taken_.back(), reinterpret_cast<sockaddr *>(&here), &length);
        for (int fd = 0; fd < 1024; fd++) {
            length = sizeof there;
            if (fd != taken_.back() && fd != socket_ &&
                getpeername(fd, reinterpret_cast<sockaddr *>(&there), &length) == 0 &&
                there.sin_port == here.sin_port) {
                int value = -1;
                length = sizeof value;
                getsockopt(fd, level, option, &value, &length);
                return value;
            }
        }
        return -1;
    }
    void go_on(std::size_t from)
    {
        const char *rest = reinterpret_cast<const char *>(&kToken) + from;
        send(taken_.back(), rest, sizeof kToken - from, MSG_NOSIGNAL);
    }
    void end()
    {
        for (const int fd : taken_)
            close(fd);
        taken_.clear();
        if (socket_ >= 0)
            close(socket_);
        socket_ = -1;
    }
    /** Without a word, as a host does whose kernel has forgotten the connection. */
    void reset()
    {
        const linger now = {1, 0};
        for (const int fd : taken_)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        end();
    }
    in_port_t port;

  private:
    int socket_;
    std::vector<int> taken_;
};

class Liveness : public testing::Test {
  protected:
    Liveness()
    {
        zc_test_vci = {};
        later_ms = 0;
    }
    ~Liveness() override { MPIDI_ZC_liveness_forget(watch); }

    void begin(in_port_t port, const std::vector<std::vector<char>> &hosts)
    {
        MPIDI_ZC_lives_t lives{};
        lives.token = kToken;
        lives.port = port;
        lives.silence = kSilence;
        std::vector<char> offer(sizeof lives + 1);
        std::memcpy(&offer[1], &lives, sizeof lives);
        for (const std::vector<char> &each : hosts)
            offer.insert(offer.end(), each.begin(), each.end());
        watch = MPIDI_ZC_liveness_watch(&offer[1], offer.size() - 1); /* at an odd address */
    }
    /** Is it seen within some seconds that the process has ended? */
    bool ends(double seconds = 20)
    {
        const auto until =
            std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        while (!MPIDI_ZC_liveness_is_over(watch)) {
            if (std::chrono::steady_clock::now() > until)
                return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return true;
    }
    /** It is looked at often enough that whatever has come has been seen. */
    bool lives() { return !ends(0.3); }
    std::uint64_t unwatched() const { return zc_test_vci.stats.unwatched; }

    MPIDI_ZC_liveness_t *watch = nullptr;
};

} // namespace

/** Takes the C library's place. */
extern "C" int clock_gettime(clockid_t which, timespec *now) noexcept
{
    const int failed = static_cast<int>(syscall(SYS_clock_gettime, which, now));
    if (which == CLOCK_MONOTONIC_COARSE)
        now->tv_sec += later_ms / 1000;
    return failed;
}

void *zc_test_malloc(size_t size)
{
    return no_memory ? nullptr : malloc(size);
}

TEST_F(Liveness, WhatHoldsTheRankEnds)
{
    taker holder(kAddress);
    begin(holder.port, {host(kAddress)});
    EXPECT_TRUE(lives()); /* it connects */
    holder.take();
    EXPECT_TRUE(lives());
    holder.end();
    EXPECT_TRUE(ends());
    EXPECT_TRUE(MPIDI_ZC_liveness_is_over(watch));
    EXPECT_EQ(unwatched(), 0u);
}

TEST_F(Liveness, ItsConnectionIsReset)
{
    taker holder(kAddress);
    begin(holder.port, {host(kAddress)});
    EXPECT_TRUE(lives()); /* it connects */
    holder.take();
    EXPECT_TRUE(lives());
    holder.reset();
    EXPECT_TRUE(ends());
}

TEST_F(Liveness, TheTokenComesInParts)
{
    taker holder(kAddress);
    begin(holder.port, {host(kAddress)});
    EXPECT_TRUE(lives());
    holder.take(kToken, 3);
    EXPECT_TRUE(lives());
    holder.go_on(3);
    EXPECT_TRUE(lives());
    holder.end();
    EXPECT_TRUE(ends());
}

TEST_F(Liveness, AnotherProcessAtThatAddressIsNotTheHolder)
{
    taker other(kAddress);
    begin(other.port, {host(kAddress)});
    EXPECT_TRUE(lives());
    other.take(kToken + 1);
    other.end();
    EXPECT_TRUE(lives());
    EXPECT_EQ(unwatched(), 1u);
}

TEST_F(Liveness, AHolderThatEndsBeforeItHasSentAllOfTheTokenIsNotReached)
{
    taker holder(kAddress);
    begin(holder.port, {host(kAddress)});
    EXPECT_TRUE(lives());
    holder.take(kToken, 7);
    holder.end();
    EXPECT_TRUE(lives());
    EXPECT_EQ(unwatched(), 1u);
}

TEST_F(Liveness, OneAddressRefuses)
{
    taker holder(kAddress);
    begin(holder.port, {host6("::1"), host(kAnother), host(kAddress)});
    EXPECT_TRUE(lives());
    holder.take();
    EXPECT_TRUE(lives());
    EXPECT_EQ(unwatched(), 0u);
    holder.end();
    EXPECT_TRUE(ends());
}

TEST_F(Liveness, OneAddressIsOfAProcessThatSaysNothing)
{
    taker silent(kAnother); /* the kernel completes the connection, and nothing is sent */
    taker holder(kAddress, silent.port);
    begin(silent.port, {host(kAnother), host(kAddress)});
    EXPECT_TRUE(lives());
    later_ms = 2000;
    EXPECT_TRUE(lives());
    holder.take();
    EXPECT_TRUE(lives());
    holder.end();
    EXPECT_TRUE(ends());
    EXPECT_EQ(unwatched(), 0u);
}

TEST_F(Liveness, ATokenThatComesLateIsCountedAndTakenAllTheSame)
{
    taker holder(kAddress);
    begin(holder.port, {host(kAddress)});
    EXPECT_TRUE(lives());
    EXPECT_EQ(unwatched(), 0u);
    later_ms = 100'000;
    EXPECT_TRUE(lives());
    EXPECT_EQ(unwatched(), 1u);
    holder.take();
    EXPECT_TRUE(lives());
    holder.end();
    EXPECT_TRUE(ends());
    EXPECT_EQ(unwatched(), 1u);
}

TEST_F(Liveness, AHostThatGivesNoSignIsNoticedByTheKernel)
{
    taker holder(kAddress);
    begin(holder.port, {host(kAddress)});
    EXPECT_TRUE(lives()); /* it connects */
    holder.take();
    EXPECT_TRUE(lives());
    EXPECT_EQ(holder.of_peer(SOL_SOCKET, SO_KEEPALIVE), 1);
    const int idle = holder.of_peer(IPPROTO_TCP, TCP_KEEPIDLE);
    EXPECT_EQ(idle + holder.of_peer(IPPROTO_TCP, TCP_KEEPINTVL) *
                         holder.of_peer(IPPROTO_TCP, TCP_KEEPCNT),
              kSilence);
}

TEST_F(Liveness, NoAddressIsReached)
{
    taker holder(kAddress);
    const in_port_t port = holder.port;
    holder.end();
    begin(port, {host(kAddress), host(kAnother)});
    EXPECT_TRUE(lives());
    EXPECT_EQ(unwatched(), 1u);
}

TEST_F(Liveness, NothingIsOffered)
{
    EXPECT_EQ(MPIDI_ZC_liveness_watch("", 0), nullptr);
    EXPECT_EQ(unwatched(), 1u);
    MPIDI_ZC_lives_t lives{};
    EXPECT_EQ(MPIDI_ZC_liveness_watch(&lives, sizeof lives - 1), nullptr);
    EXPECT_EQ(unwatched(), 2u);
}

TEST_F(Liveness, AnOfferWithoutAddressesOrWithWrongOnes)
{
    begin(htons(1), {});
    EXPECT_TRUE(lives());
    EXPECT_EQ(unwatched(), 1u);
    for (const std::vector<char> &wrong :
         {std::vector<char>{4, 127, 0, 0}, std::vector<char>{5, 1, 2, 3, 4, 5},
          std::vector<char>{0}, std::vector<char>{16, 1}, std::vector<char>{-1}}) {
        MPIDI_ZC_liveness_forget(watch);
        begin(htons(1), {wrong});
        EXPECT_TRUE(lives());
    }
    EXPECT_EQ(unwatched(), 6u);
}

TEST_F(Liveness, ThereIsNoMemory)
{
    no_memory = true;
    begin(htons(1), {host(kAddress)});
    no_memory = false;
    EXPECT_EQ(watch, nullptr);
    EXPECT_EQ(unwatched(), 1u);
}

TEST_F(Liveness, WhatIsWatchedIsForgotten)
{
    taker holder(kAddress);
    begin(holder.port, {host(kAddress)});
    EXPECT_TRUE(lives()); /* it connects */
    holder.take();
    EXPECT_TRUE(lives());
    MPIDI_ZC_liveness_forget(watch);
    watch = nullptr;
    EXPECT_TRUE(holder.is_closed());
    MPIDI_ZC_liveness_forget(nullptr);
}

TEST_F(Liveness, TwoThatWatchTheSameHolderShareAConnection)
{
    taker holder(kAddress);
    begin(holder.port, {host(kAddress)});
    MPIDI_ZC_liveness_t *first = watch;
    begin(holder.port, {host(kAddress)});
    EXPECT_EQ(watch, first);
    EXPECT_TRUE(lives()); /* it connects */
    holder.take();
    EXPECT_TRUE(lives());
    MPIDI_ZC_liveness_forget(first);
    EXPECT_TRUE(lives());
    holder.end();
    EXPECT_TRUE(ends());
    EXPECT_EQ(unwatched(), 0u);
}

TEST_F(Liveness, WhatTwoWatchIsForgottenByBoth)
{
    taker holder(kAddress);
    begin(holder.port, {host(kAddress)});
    MPIDI_ZC_liveness_t *first = watch;
    begin(holder.port, {host(kAddress)});
    EXPECT_TRUE(lives()); /* it connects */
    holder.take();
    EXPECT_TRUE(lives());
    MPIDI_ZC_liveness_forget(first);
    MPIDI_ZC_liveness_forget(watch);
    watch = nullptr;
    EXPECT_TRUE(holder.is_closed());
    begin(holder.port, {host(kAddress)});
    EXPECT_NE(watch, nullptr);
    EXPECT_TRUE(lives());
    holder.take(); /* anew */
    holder.end();
    EXPECT_TRUE(ends());
}

TEST(LivenessOffer, IsOfTheHostWhereTheHolderIs)
{
    const void *offer = nullptr;
    EXPECT_EQ(MPIDI_ZC_liveness_offer(&offer), 0u);
    MPIDI_ZC_liveness_set(4711, kToken, kSilence);
    const size_t length = MPIDI_ZC_liveness_offer(&offer);
    MPIDI_ZC_lives_t lives;
    ASSERT_GT(length, sizeof lives);
    ASSERT_LE(length, static_cast<size_t>(MPIDI_ZC_LIVENESS_ROOM));
    std::memcpy(&lives, offer, sizeof lives);
    EXPECT_EQ(lives.token, kToken);
    EXPECT_EQ(ntohs(lives.port), 4711);
    EXPECT_EQ(lives.silence, kSilence);

    MPIDI_ZC_host_t each{};
    each.list = static_cast<const char *>(offer) + sizeof lives;
    each.length = length - sizeof lives;
    int hosts = 0;
    while (MPIDI_ZC_hosts_next(&each))
        hosts++;
    EXPECT_GT(hosts, 0);
    EXPECT_EQ(each.at, each.length);
}

TEST(Hosts, ThereIsRoomForSome)
{
    char list[6];
    size_t length = 99;
    ASSERT_EQ(MPIDI_ZC_hosts_list(list, 4, &length), 0);
    EXPECT_EQ(length, 0u);
    ASSERT_EQ(MPIDI_ZC_hosts_list(list, 5, &length), 0);
    EXPECT_EQ(length, 5u);
    EXPECT_EQ(list[0], 4);
}
