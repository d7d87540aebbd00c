/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "membership.h"

namespace zc::agent {
namespace {

member named(node_id id, std::uint64_t incarnation = 1, std::uint32_t version = 1,
             member_state state = member_state::alive)
{
    member m;
    m.id = id;
    m.incarnation = incarnation;
    m.version = version;
    m.state = state;
    m.host = "h" + std::to_string(id);
    m.address = "tcp://h" + std::to_string(id);
    return m;
}

/** One member, which we drive, and its peers, which we play. */
class AgentMembershipTest : public testing::Test {
  protected:
    AgentMembershipTest() { network_.start(0); }

    void pass(double seconds)
    {
        nanos until = now_ + from_seconds(seconds);
        while (network_.due() <= until) {
            now_ = std::max(now_, network_.due());
            std::size_t before = out_.size();
            network_.tick(now_, out_);
            for (std::size_t i = before; i < out_.size(); i++) {
                auto *ping = std::get_if<msg::ping>(&out_[i].body);
                if (ping != nullptr && answering_.contains(out_[i].to))
                    network_.on(now_, out_[i].to,
                                msg::ack{ping->nonce, {named(out_[i].to, 1, ++version_)}}, out_);
            }
        }
        now_ = until;
    }
    template <class T>
    std::size_t sent(node_id to) const
    {
        return static_cast<std::size_t>(std::count_if(out_.begin(), out_.end(), [&](const auto &o) {
            return o.to == to && std::holds_alternative<T>(o.body);
        }));
    }
    member_state state(node_id id) const { return network_.find(id)->node.state; }

    settings s_;
    random_source random_{1};
    membership network_{s_, named(1), random_};
    outbox out_;
    std::set<node_id> answering_;
    std::uint32_t version_ = 1;
    nanos now_ = 0;
};

TEST_F(AgentMembershipTest, PingsEverybodyInTurn)
{
    for (node_id n = 2; n < 7; n++) {
        network_.learn(now_, named(n));
        answering_.insert(n);
    }
    pass(10);
    for (node_id n = 2; n < 7; n++) {
        EXPECT_GE(sent<msg::ping>(n), 1u);
        EXPECT_EQ(state(n), member_state::alive);
    }
}

TEST_F(AgentMembershipTest, AsksOthersBeforeItSuspects)
{
    network_.learn(now_, named(2));
    network_.learn(now_, named(3));
    answering_ = {3};
    pass(3);
    EXPECT_GE(sent<msg::ping_for_me>(3), 1u);
    EXPECT_EQ(state(2), member_state::suspect);
}

TEST_F(AgentMembershipTest, TheSilentDie)
{
    network_.learn(now_, named(2));
    pass(12);
    EXPECT_EQ(state(2), member_state::dead);
    EXPECT_FALSE(network_.alive(2));
}

TEST_F(AgentMembershipTest, AWitnessSavesTheSilent)
{
    network_.learn(now_, named(2));
    network_.learn(now_, named(3));
    answering_ = {3};
    for (int i = 0; i < 40; i++) {
        pass(0.5);
        for (std::size_t k = 0; k < out_.size(); k++) {
            if (auto *plea = std::get_if<msg::ping_for_me>(&out_[k].body))
                network_.on(now_, 3, msg::it_lives{plea->nonce, plea->target});
        }
        out_.clear();
    }
    EXPECT_EQ(state(2), member_state::alive);
}

TEST_F(AgentMembershipTest, ASignOfLifeHealsAWrongVerdict)
{
    network_.learn(now_, named(2, 1, 5));
    network_.learn(now_, named(2, 1, 5, member_state::dead));
    EXPECT_EQ(state(2), member_state::dead);
    network_.learn(now_, named(2, 1, 5)); /* no news */
    EXPECT_EQ(state(2), member_state::dead);
    network_.learn(now_, named(2, 1, 6));
    EXPECT_EQ(state(2), member_state::alive);
}

TEST_F(AgentMembershipTest, LooksForTheDead)
{
    network_.learn(now_, named(2));
    pass(12);
    out_.clear();
    pass(20); /* both halves of a cut network do this: one of them is heard when it heals */
    EXPECT_GE(sent<msg::ping>(2), 2u);
}

TEST_F(AgentMembershipTest, RefutesItsOwnDeath)
{
    std::uint32_t before = network_.self().version;
    network_.learn(now_, named(1, 1, before + 10, member_state::dead));
    EXPECT_GT(network_.self().version, before + 10);
}

TEST_F(AgentMembershipTest, WhoLeftIsNotMissed)
{
    network_.learn(now_, named(2));
    network_.on(now_, 2, msg::leave{});
    EXPECT_FALSE(network_.alive(2));
    network_.learn(now_, named(2, 1, 50)); /* an old rumour of this life */
    EXPECT_FALSE(network_.alive(2));
    network_.learn(now_, named(2, 2, 1)); /* started anew */
    EXPECT_TRUE(network_.alive(2));
}

TEST_F(AgentMembershipTest, KnowsNoMoreThanItMay)
{
    for (node_id n = 2; n < 2000; n++)
        network_.learn(now_, named(n));
    EXPECT_EQ(network_.peers().size(), s_.max_members);
}

/* Else no agent could ask for a move of a rank whose job is reached by an agent out of sight. */
TEST_F(AgentMembershipTest, AMemberThatIsWantedIsTakenInAndStays)
{
    for (node_id n = 2; n < 2000; n++)
        network_.learn(now_, named(n));
    ASSERT_EQ(network_.find(5000), nullptr);
    network_.want({"h5000", "h5001"});
    network_.learn(now_, named(5000));
    ASSERT_NE(network_.find(5000), nullptr);
    for (node_id n = 10000; n < 20000; n++)
        network_.learn(now_, named(n));
    EXPECT_NE(network_.find(5000), nullptr);
    EXPECT_EQ(network_.peers().size(), s_.max_members);

    std::set<std::string> all;
    for (const peer &p : network_.peers())
        all.insert(p.node.host);
    all.insert("h5001");
    network_.want(all);
    network_.learn(now_, named(5001)); /* no room, and no member that could go */
    EXPECT_EQ(network_.find(5001), nullptr);
    EXPECT_EQ(network_.peers().size(), s_.max_members);
}

TEST_F(AgentMembershipTest, GossipIsBounded)
{
    for (node_id n = 2; n < 100; n++)
        network_.learn(now_, named(n));
    pass(5);
    for (const outbound &o : out_) {
        if (auto *ping = std::get_if<msg::ping>(&o.body)) {
            EXPECT_LE(ping->gossip.size(), kMaxGossip);
            EXPECT_EQ(ping->gossip.at(0).id, 1u);
        }
    }
}

TEST_F(AgentMembershipTest, MeasuresTheWay)
{
    network_.learn(now_, named(2));
    outbox out;
    now_ = network_.due();
    network_.tick(now_, out);
    for (const outbound &o : out) {
        if (auto *ping = std::get_if<msg::ping>(&o.body))
            network_.on(now_ + 250'000, 2, msg::ack{ping->nonce, {}}, out_);
    }
    EXPECT_NEAR(network_.find(2)->rtt_us, 250, 1);
}

TEST_F(AgentMembershipTest, OneSlowAnswerIsNotBelievedForLong)
{
    network_.learn(now_, named(2));
    answering_ = {2};
    const nanos milliseconds[] = {2000, 2, 40};
    std::size_t answered = 0, seen = 0;
    while (now_ < 60 * kSecond) {
        pass(to_seconds(network_.due() - now_));
        for (; seen < out_.size(); seen++) {
            auto *probe = std::get_if<msg::probe>(&out_[seen].body);
            if (probe == nullptr)
                continue;
            ASSERT_LT(answered, 3u) << "asked again";
            network_.on(now_ + milliseconds[answered++] * 1'000'000, 2,
                        msg::probe_ack{probe->nonce});
        }
    }
    EXPECT_EQ(answered, 3u);
    EXPECT_NEAR(network_.find(2)->bytes_per_us, s_.probe_bytes / 2000.0, 1);
}

TEST_F(AgentMembershipTest, BandwidthIsMeasuredOnceTheWayIsKnown)
{
    s_.probe_period = kSecond / 10;
    network_.start(0);
    network_.learn(now_, named(2));
    pass(0.5);
    ASSERT_EQ(state(2), member_state::alive);
    EXPECT_EQ(sent<msg::probe>(2), 0u);
    answering_ = {2};
    pass(3);
    EXPECT_EQ(sent<msg::probe>(2), 3u);
}

TEST_F(AgentMembershipTest, AnAnswerNobodyAskedForIsNotBelieved)
{
    network_.learn(now_, named(2));
    network_.on(now_, 2, msg::ack{12345, {}}, out_);
    EXPECT_EQ(network_.find(2)->rtt_us, 0);
}

} // namespace
} // namespace zc::agent
