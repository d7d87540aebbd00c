/* SPDX-License-Identifier: BSD-3-Clause */
#include "singh_graham.h"

#include "group_plan.h"
#include "levenshtein.h"
#include "support.h"

using namespace zc::groups;

namespace {

constexpr uint32_t kRanks = 16;

struct variant {
    singh_graham::memory_of past = singh_graham::memory_of::nothing;
    uint32_t sample = 128;
    bool kmp = false;
    bool adaptive = false;
};

class predictor {
  public:
    explicit predictor(const variant &v)
        : memory_(64 << 20), engine_(setting_of(v), v.past, &memory_)
    {
    }

    void feed(const std::vector<zcp_event_t> &events, size_t from, size_t to)
    {
        for (size_t i = from; i < to; i++)
            engine_.learn(events[i], static_cast<tick>(i));
    }

    /** How alike the next @length symbols expected and those to come are, 0 … 1. */
    double alike(const std::vector<zcp_event_t> &events, size_t from, size_t length)
    {
        std::pmr::vector<uint32_t> expected;
        engine_.expect(length, expected);
        std::vector<uint32_t> actual;
        for (size_t i = from; i < from + length; i++)
            actual.push_back(events[i].src * kRanks + events[i].dst);
        const size_t edits = levenshtein(expected, actual, length, std::pmr::new_delete_resource());
        return 1 - static_cast<double>(edits) / static_cast<double>(length);
    }

    uint32_t sampling() const { return engine_.sampling(); }

  private:
    static setting setting_of(const variant &v)
    {
        setting s{};
        s.ranks = kRanks;
        s.period = v.sample;
        s.period_flows = s.lasting_flows = kRanks * (kRanks - 1);
        s.sample = v.sample;
        s.longest_sample = 4096;
        s.search_bytes = 16 << 20;
        s.literals = 3;
        s.window = 4;
        s.support = 2;
        s.kmp = v.kmp;
        s.adaptive = v.adaptive;
        return s;
    }

    bounded_memory memory_;
    singh_graham engine_;
};

TEST(SinghGrahamTest, KmpKeepsThePhaseThatTheLongPatternLoses)
{
    /* 64 events per round, samples of 100: the longest pattern is no whole round. */
    const auto events = butterfly({kRanks, 5000, 0, 0, 1}).events;
    predictor with({singh_graham::memory_of::nothing, 150, true, false});
    predictor without({singh_graham::memory_of::nothing, 150, false, false});
    with.feed(events, 0, 3000);
    without.feed(events, 0, 3000);
    EXPECT_EQ(1, with.alike(events, 3000, 150));
    EXPECT_LT(without.alike(events, 3000, 150), 0.9);
}

TEST(SinghGrahamTest, HistoryForetellsAlternation)
{
    /* Samples alternate between two programs, each repeated to fill one sample. */
    std::vector<zcp_event_t> events;
    for (uint32_t sample = 0; sample < 20; sample++) {
        for (uint32_t i = 0; i < 128; i++) {
            const uint32_t at = i % 8;
            events.push_back({sample % 2 ? at : 15 - at, sample % 2 ? 15 - at : at, 100, 0, 0, 0});
        }
    }
    for (const auto past : {singh_graham::memory_of::same, singh_graham::memory_of::similar}) {
        predictor knows({past, 128, true, false});
        knows.feed(events, 0, 128 * 10);
        EXPECT_EQ(1, knows.alike(events, 128 * 10, 128));
    }
    predictor basic({singh_graham::memory_of::nothing, 128, true, false});
    basic.feed(events, 0, 128 * 10);
    EXPECT_LT(basic.alike(events, 128 * 10, 128), 0.1);
}

TEST(SinghGrahamTest, TheSimilarIsRecognisedWhereTheSameIsNot)
{
    /* As above, but every sample has an event of its own in every round. */
    std::vector<zcp_event_t> events;
    for (uint32_t sample = 0; sample < 20; sample++) {
        for (uint32_t i = 0; i < 128; i++) {
            const uint32_t at = i % 8;
            const bool own = at == 7;
            const uint32_t src = own ? sample % 13 : sample % 2 ? at : 15 - at;
            const uint32_t dst = own ? (sample % 13 + 1) : sample % 2 ? 15 - at : at;
            events.push_back({src, dst, 100, 0, 0, 0});
        }
    }
    predictor similar({singh_graham::memory_of::similar, 128, true, false});
    predictor same({singh_graham::memory_of::same, 128, true, false});
    similar.feed(events, 0, 128 * 10);
    same.feed(events, 0, 128 * 10);
    EXPECT_GT(similar.alike(events, 128 * 10, 128), 0.8);
    EXPECT_LT(same.alike(events, 128 * 10, 128), 0.2);
}

TEST(SinghGrahamTest, TheSampleGrowsUntilItHoldsWholeRounds)
{
    const auto events = butterfly({kRanks, 20000, 0, 0, 1}).events;
    predictor adaptive({singh_graham::memory_of::nothing, 20, true, true});
    adaptive.feed(events, 0, 10000);
    EXPECT_EQ(256u, adaptive.sampling()); /* four rounds of 64 */
    predictor fixed({singh_graham::memory_of::nothing, 20, true, false});
    fixed.feed(events, 0, 10000);
    EXPECT_EQ(20u, fixed.sampling());
}

} // namespace
