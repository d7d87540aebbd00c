/* SPDX-License-Identifier: BSD-3-Clause */
/* The incoming half against a stream that is cut anywhere, with every way to say where frames go.
 */
#include "inbound.h"
#include "outbound.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>

using namespace zcl;

namespace {

constexpr std::size_t kLanding = 64 * ZCL_PAGE;

hello good_hello()
{
    hello h{};
    h.magic = kHelloMagic;
    h.version = kVersion;
    return h;
}

/* The bytes that a sender makes of frames. */
class stream {
  public:
    stream() : out_(good_hello(), true) {}
    void add(std::uint64_t id, const std::vector<char> &payload, std::uint32_t page_class)
    {
        payloads_.push_back(payload);
        out_.push({id, payload.size(), page_class, 0}, payloads_.back().data(), nullptr);
    }
    std::vector<char> bytes()
    {
        std::vector<char> all;
        while (!out_.empty()) {
            iovec pieces[outbound::kMostPieces];
            std::size_t len = 0;
            const int nr = out_.plan(pieces);
            for (int i = 0; i < nr; i++) {
                const char *at = static_cast<const char *>(pieces[i].iov_base);
                all.insert(all.end(), at, at + pieces[i].iov_len);
                len += pieces[i].iov_len;
            }
            out_.consumed(len, [](const outbound::item &) {});
        }
        return all;
    }

  private:
    std::list<std::vector<char>> payloads_;
    outbound out_;
};

std::vector<char> payload(std::size_t len, unsigned seed)
{
    std::vector<char> bytes(len);
    for (std::size_t i = 0; i < len; i++)
        bytes[i] = static_cast<char>(i * 7 + i / 251 + seed);
    return bytes;
}

struct arrival {
    zcl_frame_t frame;
    void *data;
    bool landed;
};

class InboundTest : public testing::Test {
  protected:
    InboundTest()
    {
        user_.trash = trash_;
        user_.greeted = [](const hello &h) { return h.magic == kHelloMagic; };
        user_.place = [this](const zcl_frame_t &f) { return place_ ? place_(f) : nullptr; };
        user_.arrived = [this](const zcl_frame_t &f, void *data, bool landed) {
            arrived_.push_back({f, data, landed});
        };
        in_ = std::make_unique<inbound>(user_, kLanding);
    }

    /* Puts bytes where the plan says; as many as it has room for. False: not our protocol. */
    bool feed(const char *&at, std::size_t &left, std::size_t most, std::size_t tail)
    {
        const inbound::spans plan = in_->plan(tail);
        std::size_t n = 0;
        for (const inbound::span &s : plan) {
            const std::size_t k = std::min({s.len, left - n, most - n});
            std::memcpy(s.at, at + n, k);
            n += k;
        }
        at += n;
        left -= n;
        fed_ = n;
        return n == 0 || in_->consumed(n);
    }

    bool feed_all(const std::vector<char> &bytes, std::size_t tail)
    {
        const char *at = bytes.data();
        std::size_t left = bytes.size();
        while (left > 0)
            if (!feed(at, left, left, tail) || fed_ == 0)
                return false;
        return true;
    }

    char trash_[ZCL_PAGE];
    inbound_user user_;
    std::function<void *(const zcl_frame_t &)> place_;
    std::vector<arrival> arrived_;
    std::unique_ptr<inbound> in_;
    std::size_t fed_ = 0;
};

} // namespace

TEST_F(InboundTest, FramesArriveWhereverTheStreamIsCut)
{
    std::mt19937 random(20261124);
    auto below = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    for (int round = 0; round < 300; round++) {
        SetUp();
        arrived_.clear();
        in_ = std::make_unique<inbound>(user_, kLanding);
        stream s;
        std::vector<std::vector<char>> sent;
        std::vector<std::uint32_t> classes;
        std::list<std::vector<char>> placed;
        const bool expecting = below(3) == 0;
        for (unsigned i = 0; i < 20; i++) {
            sent.push_back(payload(below(4) == 0 ? 0 : below(3 * ZCL_PAGE), i));
            classes.push_back(expecting || below(2) ? ZCL_CLASS_NONE
                                                    : static_cast<std::uint32_t>(below(ZCL_PAGE)));
            s.add(i, sent.back(), classes.back());
            if (expecting) {
                placed.emplace_back(sent.back().size() + 1);
                in_->expect({i, sent.back().size(), ZCL_CLASS_NONE, 0}, placed.back().data());
            }
        }
        place_ = [&](const zcl_frame_t &f) -> void * {
            if (f.id % 3 == 0)
                return nullptr;
            placed.emplace_back(f.len + 1);
            return placed.back().data();
        };
        const std::vector<char> bytes = s.bytes();
        const char *at = bytes.data();
        std::size_t left = bytes.size(), seen = 0;
        while (left > 0) {
            ASSERT_TRUE(feed(at, left, 1 + below(2 * ZCL_PAGE), below(3) * 16 * ZCL_PAGE));
            ASSERT_GT(fed_, 0u);
            for (; seen < arrived_.size(); seen++) {
                const arrival &a = arrived_[seen];
                ASSERT_EQ(a.frame.id, seen);
                ASSERT_EQ(a.frame.len, sent[seen].size());
                ASSERT_TRUE(std::equal(sent[seen].begin(), sent[seen].end(),
                                       static_cast<const char *>(a.data)));
                ASSERT_FALSE(expecting && a.landed);
                if (!a.landed)
                    continue;
                const bool in_class =
                    reinterpret_cast<std::uintptr_t>(a.data) % ZCL_PAGE == classes[seen];
                ASSERT_TRUE(in_class || classes[seen] == ZCL_CLASS_NONE);
                ASSERT_TRUE(in_->release(a.data));
            }
        }
        ASSERT_EQ(arrived_.size(), sent.size());
        in_->plan(0);
        ASSERT_TRUE(in_->idle());
    }
}

TEST_F(InboundTest, WithoutRoomNothingIsReadUntilSomeIsGivenBack)
{
    stream s;
    for (unsigned i = 0; i < 5; i++)
        s.add(i, payload(20 * ZCL_PAGE, i), 0);
    const std::vector<char> bytes = s.bytes();
    const char *at = bytes.data();
    std::size_t left = bytes.size();
    for (unsigned next = 0; next < 5; next++) {
        while (left > 0) {
            ASSERT_TRUE(feed(at, left, left, 0));
            if (fed_ == 0)
                break;
        }
        ASSERT_GT(arrived_.size(), next);
        ASSERT_TRUE(next + 3 >= arrived_.size());
        const std::vector<char> want = payload(20 * ZCL_PAGE, next);
        ASSERT_EQ(std::memcmp(arrived_[next].data, want.data(), want.size()), 0);
        ASSERT_TRUE(in_->release(arrived_[next].data));
    }
    EXPECT_EQ(arrived_.size(), 5u);
}

TEST_F(InboundTest, WhatHasNoRoomForItsRestWaitsForAPlace)
{
    stream s;
    s.add(7, payload(2 * kLanding, 1), ZCL_CLASS_NONE);
    const std::vector<char> bytes = s.bytes();
    const char *at = bytes.data();
    std::size_t left = bytes.size();
    ASSERT_TRUE(feed(at, left, 64, kLanding)); /* the hello */
    ASSERT_TRUE(feed(at, left, 10 * ZCL_PAGE, 30 * ZCL_PAGE));
    ASSERT_TRUE(in_->undecided());
    ASSERT_TRUE(in_->plan(kLanding).empty());
    std::vector<char> place(2 * kLanding);
    place_ = [&](const zcl_frame_t &) { return place.data(); };
    while (left > 0) {
        ASSERT_TRUE(feed(at, left, left, kLanding));
        ASSERT_GT(fed_, 0u);
    }
    ASSERT_EQ(arrived_.size(), 1u);
    EXPECT_EQ(place, payload(2 * kLanding, 1));
    EXPECT_FALSE(arrived_[0].landed);
    EXPECT_EQ(in_->counts().direct, 2 * kLanding);
    EXPECT_EQ(in_->counts().landed, 0u);
}

TEST_F(InboundTest, RefusesWhatIsNotExpected)
{
    for (const auto &[id, len] : {std::pair<unsigned, std::size_t>{2, 100}, {1, 101}}) {
        in_ = std::make_unique<inbound>(user_, kLanding);
        char buf[200];
        in_->expect({1, 100, ZCL_CLASS_NONE, 0}, buf);
        stream s;
        s.add(id, payload(len, 0), ZCL_CLASS_NONE);
        EXPECT_FALSE(feed_all(s.bytes(), kLanding));
    }
}

TEST_F(InboundTest, RefusesHeadersThatAreNone)
{
    stream s;
    s.add(1, payload(100, 0), 16);
    const std::vector<char> good = s.bytes();
    EXPECT_TRUE(feed_all(good, kLanding));
    auto with = [&](auto change) {
        std::vector<char> bad = good;
        header h;
        std::memcpy(&h, &bad[sizeof(hello)], sizeof h);
        change(h);
        std::memcpy(&bad[sizeof(hello)], &h, sizeof h);
        in_ = std::make_unique<inbound>(user_, kLanding);
        return feed_all(bad, kLanding);
    };
    EXPECT_TRUE(with([](header &) {}));
    EXPECT_FALSE(with([](header &h) { h.magic++; }));
    EXPECT_FALSE(with([](header &h) { h.pad++; }));
    EXPECT_FALSE(with([](header &h) { h.pad = ZCL_PAGE; }));
    EXPECT_FALSE(with([](header &h) { h.page_class = ZCL_PAGE; }));
    EXPECT_FALSE(with([](header &h) { h.len = kLongest + 1; }));
}
