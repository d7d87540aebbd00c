/* SPDX-License-Identifier: BSD-3-Clause */

/* What must hold on any sequence of events. */
#include <algorithm>
#include <numeric>

#include "engine.h"

using namespace zcp_test;

namespace {

/** Ranks, tags and communicators come and go; sizes and addresses are wild. */
class wild_program {
  public:
    explicit wild_program(uint32_t seed) : random_(seed) {}

    zcp_receive_t next()
    {
        if (random_() % 500 == 0)
            phase_++;
        const auto source = static_cast<int32_t>(random_() % 5000);
        const auto tag = static_cast<int32_t>(random_() % 40) - 1;
        const uint64_t bytes = random_() % 4 == 0 ? random_() : uint64_t{1} << (random_() % 40);
        const uint64_t addr = random_() % 3 == 0 ? uint64_t{random_()} << (random_() % 32)
                                                 : 0x1000 * (random_() % 64);
        return {{phase_, random_() % 8 == 0 ? source : source % 16, tag, bytes}, addr};
    }
    uint32_t roll(uint32_t sides) { return static_cast<uint32_t>(random_() % sides); }

  private:
    std::mt19937 random_;
    uint32_t phase_ = 0;
};

class PropertyTest : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Seeds, PropertyTest, testing::Range(0u, 6u));

TEST_P(PropertyTest, TwoEnginesAgreeOnAnySequence)
{
    engine one;
    engine two;
    wild_program program(GetParam());
    std::vector<std::pair<zcp_landing_t, uint64_t>> open;
    for (int i = 0; i < 20000; i++) {
        const zcp_receive_t r = program.next();
        if (program.roll(2) == 0) {
            one.receive(r);
            two.receive(r);
        } else {
            const zcp_landing_t a = one.arrive(r.envelope);
            const zcp_landing_t b = two.arrive(r.envelope);
            ASSERT_EQ(a.addr, b.addr);
            ASSERT_EQ(a.confidence, b.confidence);
            ASSERT_EQ(a.claim, b.claim);
            open.emplace_back(a, r.addr);
        }
        if (open.size() > 50) {
            std::swap(open[program.roll(50)], open.back());
            one.settle(open.back().first, open.back().second);
            two.settle(open.back().first, open.back().second);
            open.pop_back();
        }
    }
    const auto a = one.next(16);
    const auto b = two.next(16);
    ASSERT_EQ(a.size(), b.size());
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), same));
}

TEST_P(PropertyTest, MemoryIsTakenOnceWhateverHappens)
{
    zcp_params_t params = params_of(ZCP_DEFAULT);
    params.max_bytes = size_t{64 + 16 * GetParam()} << 10;
    engine engine(params);
    const uint64_t bytes = engine.stats().bytes;
    EXPECT_LE(bytes, params.max_bytes);
    wild_program program(GetParam());
    for (int i = 0; i < 50000; i++) {
        const zcp_receive_t r = program.next();
        if (program.roll(2) == 0)
            engine.receive(r);
        else
            engine.arrive(r.envelope); /* never settled: the worst that can be */
    }
    EXPECT_EQ(bytes, engine.stats().bytes);
}

/* Messages of different keys say nothing of each other: however their events
 * interleave, each gets the answers it would get alone. */
TEST_P(PropertyTest, TheOrderOfKeysDoesNotMatterForLanding)
{
    constexpr int kKeys = 50;
    constexpr int kRounds = 60;
    const auto address = [](int key, int round) {
        return uint64_t{0x100000} * (key + 1) +
               0x1000 * static_cast<uint64_t>(round % (key % 5 + 1));
    };
    engine sorted;
    engine shuffled;
    std::mt19937 random(GetParam());
    std::vector<int> order(kKeys);
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < kRounds; round++) {
        std::vector<uint64_t> expected(kKeys);
        for (int key = 0; key < kKeys; key++) {
            const zcp_landing_t landing = sorted.arrive(envelope(key));
            expected[key] = landing.addr;
            sorted.settle(landing, address(key, round));
        }
        for (size_t i = order.size(); i > 1; i--)
            std::swap(order[i - 1], order[random() % i]);
        for (const int key : order) {
            const zcp_landing_t landing = shuffled.arrive(envelope(key));
            EXPECT_EQ(expected[key], landing.addr) << "key " << key << " round " << round;
            shuffled.settle(landing, address(key, round));
        }
    }
}

/* Names of ranks, tags and communicators carry no meaning. */
TEST_P(PropertyTest, RenamingKeysChangesNothing)
{
    engine plain;
    engine renamed;
    for (const zcp_receive_t &r : repeated(nested_period(), 126 * 6)) {
        zcp_receive_t other = r;
        other.envelope.comm = 0x80000000u + GetParam();
        other.envelope.source = 1000000 - 7 * r.envelope.source;
        other.envelope.tag = r.envelope.tag * 31 + 5;
        const zcp_landing_t a = plain.arrive(r.envelope);
        const zcp_landing_t b = renamed.arrive(other.envelope);
        EXPECT_EQ(a.addr, b.addr);
        EXPECT_EQ(a.confidence, b.confidence);
        plain.settle(a, r.addr);
        renamed.settle(b, r.addr);
    }
    EXPECT_EQ(plain.stats().hits, renamed.stats().hits);
}

} // namespace
