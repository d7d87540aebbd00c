/* SPDX-License-Identifier: BSD-3-Clause */
#include <set>

#include <gtest/gtest.h>

#include "admission.h"
#include "samples.h"

namespace zc::agent {
namespace {

std::string bytes_of(node_id sender, std::uint64_t incarnation, std::uint64_t sequence)
{
    return encode({sender, incarnation, sequence, msg::leave{}});
}

class AgentAdmissionTest : public testing::Test {
  protected:
    flaw admit(node_id sender, std::uint64_t incarnation, std::uint64_t sequence)
    {
        message m;
        return door_.admit(bytes_of(sender, incarnation, sequence), now_++, m);
    }
    admission door_{100};
    nanos now_ = 0;
};

TEST_F(AgentAdmissionTest, LetsEachMessageInOnce)
{
    EXPECT_EQ(admit(1, 1, 1), flaw::none);
    EXPECT_EQ(admit(1, 1, 1), flaw::replayed);
    EXPECT_EQ(admit(1, 1, 2), flaw::none);
    EXPECT_EQ(admit(1, 1, 1), flaw::replayed);
    EXPECT_EQ(door_.count(flaw::none), 2u);
    EXPECT_EQ(door_.count(flaw::replayed), 2u);
}

TEST_F(AgentAdmissionTest, LetsInWhatWasOvertaken)
{
    EXPECT_EQ(admit(1, 1, 10), flaw::none);
    EXPECT_EQ(admit(1, 1, 3), flaw::none);
    EXPECT_EQ(admit(1, 1, 3), flaw::replayed);
    EXPECT_EQ(admit(1, 1, 70), flaw::none);
    EXPECT_EQ(admit(1, 1, 7), flaw::none); /* 63 back: the last place of the window */
    EXPECT_EQ(admit(1, 1, 6), flaw::replayed);
}

TEST_F(AgentAdmissionTest, RefusesAnEarlierLife)
{
    EXPECT_EQ(admit(1, 5, 9), flaw::none);
    EXPECT_EQ(admit(1, 6, 1), flaw::none);
    EXPECT_EQ(admit(1, 5, 10), flaw::old_incarnation);
}

TEST_F(AgentAdmissionTest, RefusesItsOwnName)
{
    EXPECT_EQ(admit(100, 1, 1), flaw::forged);
}

TEST_F(AgentAdmissionTest, KeepsSendersApart)
{
    EXPECT_EQ(admit(1, 9, 50), flaw::none);
    EXPECT_EQ(admit(2, 1, 1), flaw::none);
}

TEST_F(AgentAdmissionTest, CountsWhatDoesNotDecode)
{
    message m;
    EXPECT_EQ(door_.admit("garbage", 0, m), flaw::too_short);
    EXPECT_EQ(door_.count(flaw::too_short), 1u);
}

/* Random orders with duplicates: nothing twice, and nothing refused within the window. */
TEST_F(AgentAdmissionTest, NeverAdmitsTwice)
{
    random_source r(4);
    std::set<std::uint64_t> in;
    std::uint64_t highest = 0;
    for (int i = 0; i < 20'000; i++) {
        std::uint64_t sequence = 1 + static_cast<std::uint64_t>(i) / 2 + r.below(40);
        bool inside = sequence + 64 > highest;
        bool admitted = admit(3, 1, sequence) == flaw::none;
        EXPECT_EQ(admitted, inside && !in.contains(sequence));
        if (admitted)
            in.insert(sequence);
        highest = std::max(highest, sequence);
    }
}

TEST_F(AgentAdmissionTest, MemoryIsBounded)
{
    for (node_id n = 200; n < 200 + admission::kMaxPeers + 10; n++)
        ASSERT_EQ(admit(n, 1, 1), flaw::none);
    EXPECT_EQ(admit(200 + admission::kMaxPeers + 9, 1, 1), flaw::replayed);
}

} // namespace
} // namespace zc::agent
