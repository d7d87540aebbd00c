/* SPDX-License-Identifier: BSD-3-Clause */
#include "singh_graham.h"

#include <string>
#include <string_view>

#include "group_plan.h"
#include "levenshtein.h"
#include "support.h"

using namespace zc::groups;

namespace {

using how = singh_graham::predictor;

constexpr uint32_t kRanks = 16;

struct variant {
    how predictor = how::basic;
    uint32_t sample = 128;
    zcp_groups_kmp_t kmp = ZCP_GROUPS_KMP_OFF;
    bool adaptive = false;
    uint32_t literals = 3;
    uint32_t window = 4;
    zcp_groups_match_t match = ZCP_GROUPS_MATCH_WHOLE;
    zcp_groups_recent_t recent = ZCP_GROUPS_RECENT_OVER;
};

/* Each letter is a pair of ranks. */
zcp_event_t event_of(char letter)
{
    const auto i = static_cast<uint32_t>(letter - 'a');
    return {i / 15, (i / 15 + 1 + i % 15) % kRanks, 100, 0, 0, 0};
}

class engine {
  public:
    explicit engine(const variant &v)
        : memory_(64 << 20), engine_(setting_of(v), v.predictor, &memory_)
    {
    }

    void feed(const std::vector<zcp_event_t> &events, size_t from, size_t to)
    {
        for (size_t i = from; i < to; i++)
            engine_.learn(events[i], static_cast<tick>(i));
    }

    void feed(std::string_view letters)
    {
        for (const char letter : letters)
            engine_.learn(event_of(letter), 0);
    }

    /** The pattern expected, from the place on that it is thought to be at. */
    std::string expected() const
    {
        const auto p = engine_.predict();
        std::string out;
        for (size_t i = 0; p && i < p->pattern.size(); i++) {
            const uint32_t symbol = p->pattern[(p->phase + i) % p->pattern.size()];
            const uint32_t src = symbol / kRanks;
            out +=
                static_cast<char>('a' + src * 15 + (symbol % kRanks + kRanks - src - 1) % kRanks);
        }
        return out;
    }

    /** How alike the next @length symbols expected and those to come are, 0 … 1. */
    double alike(const std::vector<zcp_event_t> &events, size_t from, size_t length)
    {
        const auto p = engine_.predict();
        std::vector<uint32_t> expected;
        std::vector<uint32_t> actual;
        for (size_t i = 0; i < length; i++) {
            if (p)
                expected.push_back(p->pattern[(p->phase + i) % p->pattern.size()]);
            actual.push_back(events[from + i].src * kRanks + events[from + i].dst);
        }
        const size_t edits = levenshtein(expected, actual, length, std::pmr::new_delete_resource());
        return 1 - static_cast<double>(edits) / static_cast<double>(length);
    }

    uint32_t sampling() const { return engine_.sampling(); }
    uint64_t partial() const { return engine_.partial_searches(); }

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
        s.archive_bytes = 16 << 20;
        s.literals = v.literals;
        s.window = v.window;
        s.support = 2;
        s.kmp = v.kmp;
        s.adaptive = v.adaptive;
        s.match = v.match;
        s.recent = v.recent;
        return s;
    }

    bounded_memory memory_;
    singh_graham engine_;
};

/** For examples by hand: patterns without gaps. */
engine by_hand(how predictor, uint32_t sample, zcp_groups_kmp_t kmp = ZCP_GROUPS_KMP_OFF)
{
    return engine({predictor, sample, kmp, false, 2, 2});
}

/* ---- basic ----------------------------------------------------------------------- */

TEST(SinghGrahamTest, BasicIsTheLongestPatternOfTheLatestSample)
{
    engine e = by_hand(how::basic, 100);
    EXPECT_EQ("", e.expected());
    e.feed("abcdxabcdyefzef");
    EXPECT_EQ("cdab", e.expected()); /* the last "abcd" ended six places ago */
}

TEST(SinghGrahamTest, BasicIsTheClosestOfEquallyLongOnes)
{
    engine e = by_hand(how::basic, 100);
    e.feed("abxabyefzef");
    EXPECT_EQ("ef", e.expected());
    e.feed("wab");
    EXPECT_EQ("ab", e.expected());
}

TEST(SinghGrahamTest, BasicIsOfTheLatestSampleThatIsOver)
{
    engine e = by_hand(how::basic, 15);
    e.feed("abcdxabcdyefzef");
    EXPECT_EQ("cdab", e.expected());
    e.feed("ghgh");
    EXPECT_EQ("cdab", e.expected()); /* ten places ago */
    e.feed("ghghghghijk");
    EXPECT_EQ("hghghghghg", e.expected()); /* "gh" five times, twice; three places ago */
}

TEST(SinghGrahamTest, BasicIsTheLastPatternOfThePreviousSampleIfThereIsNone)
{
    engine e = by_hand(how::basic, 15);
    e.feed("abcdxabcdyefzef");
    e.feed("ghijklmnopqrstu");
    EXPECT_EQ("fe", e.expected()); /* fifteen places ago */
}

TEST(SinghGrahamTest, BasicLooksAsFarBackAsItHasTo)
{
    engine e = by_hand(how::basic, 5);
    e.feed("abxab");
    e.feed("cdefg");
    e.feed("hijkl");
    EXPECT_EQ("ab", e.expected());
    e.feed("m");
    EXPECT_EQ("ba", e.expected());
}

/* The most recent period of section 4.4: the last one that is over, or the one that runs. */
TEST(SinghGrahamTest, BasicIsOfTheSampleThatRunsIfThatIsTheMostRecent)
{
    engine over({how::basic, 15, ZCP_GROUPS_KMP_OFF, false, 2, 2});
    engine current({how::basic, 15, ZCP_GROUPS_KMP_OFF, false, 2, 2, ZCP_GROUPS_MATCH_WHOLE,
                    ZCP_GROUPS_RECENT_CURRENT});
    const auto both = [&](std::string_view letters) {
        over.feed(letters);
        current.feed(letters);
        return over.expected() + " " + current.expected();
    };
    EXPECT_EQ("cdab cdab", both("abcdxabcdyefzef")); /* none runs yet */
    /* Nothing is repeated in it: the last pattern of the one before, which ended two places ago. */
    EXPECT_EQ("abcd ef", both("gh"));
    EXPECT_EQ("dabc gh", both("xgh"));
}

TEST(SinghGrahamTest, SpecificKnowsThePatternOfTheSampleThatRuns)
{
    for (const auto &[recent, expected] :
         {std::pair{ZCP_GROUPS_RECENT_OVER, "efg"}, {ZCP_GROUPS_RECENT_CURRENT, "gef"}}) {
        engine e(
            {how::specific, 13, ZCP_GROUPS_KMP_OFF, false, 2, 2, ZCP_GROUPS_MATCH_WHOLE, recent});
        e.feed("abxabyefgzefg");
        e.feed("abpqab"); /* "efg" ended six places ago, or comes one place after "ab" */
        EXPECT_EQ(expected, e.expected());
    }
}

/* ---- specific historical ----------------------------------------------------------- */

TEST(SinghGrahamTest, SpecificFollowsThePatternInsideTheEarlierSample)
{
    engine e = by_hand(how::specific, 11);
    e.feed("abxabyefzef");
    e.feed("abpabqrstuv");
    EXPECT_EQ("fe", e.expected()); /* "ef" began one place after; "ab" ended six ago */
    e.feed("w");
    EXPECT_EQ("ef", e.expected());
}

TEST(SinghGrahamTest, SpecificFollowsIntoTheNextSampleWhereOneEndedWithThePattern)
{
    engine e = by_hand(how::specific, 8);
    e.feed("abxabyab");
    e.feed("efzefuef");
    e.feed("abpabqrs");
    EXPECT_EQ("fe", e.expected()); /* "ef" began at once; "ab" ended three ago */
}

TEST(SinghGrahamTest, SpecificIsBasicWhereNothingIsKnown)
{
    engine alone = by_hand(how::specific, 11);
    alone.feed("abxabyefzef");
    EXPECT_EQ("ef", alone.expected());
    engine other = by_hand(how::specific, 11);
    other.feed("abxabyefzef");
    other.feed("ghpghqrstuv");
    EXPECT_EQ("gh", other.expected());
}

TEST(SinghGrahamTest, SpecificTakesTheLatestOfSeveral)
{
    engine e = by_hand(how::specific, 11);
    e.feed("abxabyefzef");
    e.feed("abxabyghzgh");
    e.feed("abpabqrstuv");
    EXPECT_EQ("hg", e.expected());
}

/* Section 4.4: "an exact prefix match" at first, "an exact match" in what follows. */
TEST(SinghGrahamTest, SpecificKnowsABeginningIfThatIsAMatch)
{
    for (const auto &[match, expected] :
         {std::pair{ZCP_GROUPS_MATCH_WHOLE, "abc"}, {ZCP_GROUPS_MATCH_PREFIX, "fe"}}) {
        engine e({how::specific, 16, ZCP_GROUPS_KMP_OFF, false, 2, 2, match});
        e.feed("abcdxabcdyefzefw");
        e.feed("abcpabcqrstuvghi"); /* "abc" ended nine places ago; "d" and one more, then "ef" */
        EXPECT_EQ(expected, e.expected());
    }
}

TEST(SinghGrahamTest, SpecificPrefersWhatIsEqualToWhatBeginsSo)
{
    for (const auto match : {ZCP_GROUPS_MATCH_WHOLE, ZCP_GROUPS_MATCH_PREFIX}) {
        engine e({how::specific, 21, ZCP_GROUPS_KMP_OFF, false, 2, 2, match});
        e.feed("abcdxabcdyabczghwghuv");
        e.feed("abcpabcqrstuvijklmnoe");
        EXPECT_EQ("hg", e.expected()); /* "gh" began one place after; "abc" ended fourteen ago */
    }
}

/* ---- Levenshtein historical ---------------------------------------------------------- */

TEST(SinghGrahamTest, LevenshteinFollowsThePatternMostAlike)
{
    for (const auto &[predictor, expected] :
         {std::pair{how::levenshtein, "qp"}, {how::specific, "ghabcxef"}}) {
        engine e = by_hand(predictor, 23);
        e.feed("abcdefghtabcdefghupqvpq");
        e.feed("abcxefghwabcxefghrijklm"); /* one of eight differs */
        EXPECT_EQ(expected, e.expected());
    }
}

TEST(SinghGrahamTest, LevenshteinIsBasicBeyondAQuarter)
{
    engine two = by_hand(how::levenshtein, 23);
    two.feed("abcdefghtabcdefghupqvpq");
    two.feed("abxyefghwabxyefghrijklm");
    EXPECT_EQ("qp", two.expected());
    engine three = by_hand(how::levenshtein, 23);
    three.feed("abcdefghtabcdefghupqvpq");
    three.feed("axyzefghwaxyzefghrijklm");
    EXPECT_EQ("ghaxyzef", three.expected());
}

TEST(SinghGrahamTest, LevenshteinPrefersWhatIsNearerToWhatIsLater)
{
    engine e = by_hand(how::levenshtein, 23);
    e.feed("abcdefghtabcdefghupqvpq");
    e.feed("abcxefghtabcxefghursvrs");
    e.feed("abcdefgzwabcdefgzkijmno"); /* one place from the first, two from the second */
    EXPECT_EQ("qp", e.expected());
}

/* ---- KMP -------------------------------------------------------------------------- */

TEST(SinghGrahamTest, WithoutKmpALongPatternHidesTheFundamentalOne)
{
    engine without = by_hand(how::basic, 100);
    without.feed("abcabcabcab");
    EXPECT_EQ("abcabcab", without.expected()); /* begins anew in the middle of a round */
    engine with = by_hand(how::basic, 100, ZCP_GROUPS_KMP_ZC);
    with.feed("abcabcabcab");
    EXPECT_EQ("cab", with.expected());
}

TEST(SinghGrahamTest, KmpFindsInHistoryWhatTheLongPatternHides)
{
    /* Two rounds then, three now: "abcabc" is new, "abc" is not. */
    engine without = by_hand(how::specific, 15);
    engine with = by_hand(how::specific, 15, ZCP_GROUPS_KMP_ZC);
    for (engine *e : {&without, &with}) {
        e->feed("abcabcxefyefqrs");
        e->feed("abcabcabcuijklm");
    }
    EXPECT_EQ("abcabc", without.expected());
    EXPECT_EQ("fe", with.expected()); /* began one place after; "abc" ended six ago */
}

TEST(SinghGrahamTest, KmpKeepsThePhaseThatTheLongPatternLoses)
{
    /* 64 events per round, samples of 150: the longest pattern is no whole round. */
    const auto events = butterfly({kRanks, 5000, 0, 0, 1}).events;
    engine with({how::basic, 150, ZCP_GROUPS_KMP_ZC});
    engine without({how::basic, 150});
    with.feed(events, 0, 3000);
    without.feed(events, 0, 3000);
    EXPECT_EQ(1, with.alike(events, 3000, 150));
    EXPECT_LT(without.alike(events, 3000, 150), 0.9);
}

/* ---- samples ------------------------------------------------------------------------ */

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
    for (const auto predictor : {how::specific, how::levenshtein}) {
        engine knows({predictor, 128, ZCP_GROUPS_KMP_ZC});
        knows.feed(events, 0, 128 * 10);
        EXPECT_EQ(1, knows.alike(events, 128 * 10, 128));
    }
    engine basic({how::basic, 128, ZCP_GROUPS_KMP_ZC});
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
    engine similar({how::levenshtein, 128, ZCP_GROUPS_KMP_ZC});
    engine same({how::specific, 128, ZCP_GROUPS_KMP_ZC});
    similar.feed(events, 0, 128 * 10);
    same.feed(events, 0, 128 * 10);
    EXPECT_GT(similar.alike(events, 128 * 10, 128), 0.8);
    EXPECT_LT(same.alike(events, 128 * 10, 128), 0.2);
}

TEST(SinghGrahamTest, TheSampleGrowsUntilItHoldsWholeRounds)
{
    const auto events = butterfly({kRanks, 20000, 0, 0, 1}).events;
    engine adaptive({how::basic, 20, ZCP_GROUPS_KMP_ZC, true});
    adaptive.feed(events, 0, 10000);
    EXPECT_EQ(256u, adaptive.sampling()); /* four rounds of 64 */
    engine fixed({how::basic, 20, ZCP_GROUPS_KMP_ZC, false});
    fixed.feed(events, 0, 10000);
    EXPECT_EQ(20u, fixed.sampling());
}

TEST(SinghGrahamTest, RequestsChangeNothing)
{
    const auto events = butterfly({kRanks, 3000, 0.05, 4, 1}).events;
    for (const auto predictor : {how::basic, how::specific, how::levenshtein}) {
        engine asked({predictor, 100, ZCP_GROUPS_KMP_ZC});
        engine alone({predictor, 100, ZCP_GROUPS_KMP_ZC});
        for (size_t i = 0; i < events.size(); i++) {
            asked.feed(events, i, i + 1);
            alone.feed(events, i, i + 1);
            if (i % 7 == 0)
                (void)asked.expected();
        }
        EXPECT_EQ(alone.expected(), asked.expected());
    }
}

} // namespace
