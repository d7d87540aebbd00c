/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <cerrno>
#include <map>

#include "support.h"

namespace {

using text = std::vector<uint32_t>;
constexpr uint32_t kAny = ZCP_DONT_CARE;

struct release_patterns {
    void operator()(zcp_patterns_t *p) const { zcp_patterns_destroy(p); }
};
using patterns = std::unique_ptr<zcp_patterns_t, release_patterns>;
using offsets = std::vector<uint32_t>;
using result = std::map<text, offsets>;

zcp_patterns_params_t lwk(uint32_t literals, uint32_t window, uint32_t support)
{
    zcp_patterns_params_t p{};
    p.size = sizeof(p);
    p.literals = literals;
    p.window = window;
    p.support = support;
    return p;
}

patterns find(const text &t, const zcp_patterns_params_t &params)
{
    zcp_patterns_t *out = nullptr;
    EXPECT_EQ(0, zcp_patterns_find(t.data(), t.size(), &params, &out));
    return patterns(out);
}

result contents(const zcp_patterns_t *p)
{
    result out;
    for (size_t i = 0; i < zcp_patterns_count(p); i++) {
        zcp_pattern_t one;
        EXPECT_EQ(0, zcp_patterns_get(p, i, &one));
        const bool is_new = out.emplace(text(one.symbols, one.symbols + one.length),
                                        offsets(one.offsets, one.offsets + one.occurrences))
                                .second;
        EXPECT_TRUE(is_new) << "reported twice";
        EXPECT_EQ(one.literals,
                  one.length - std::count(one.symbols, one.symbols + one.length, kAny));
    }
    return out;
}

offsets occurrences(const text &t, const text &pattern)
{
    offsets out;
    for (uint32_t at = 0; at + pattern.size() <= t.size(); at++) {
        bool here = true;
        for (size_t i = 0; i < pattern.size(); i++)
            here = here && (pattern[i] == kAny || pattern[i] == t[at + i]);
        if (here)
            out.push_back(at);
    }
    return out;
}

/** <L,W>: at least L literals, ends are literals, any L consecutive span at most W. */
bool dense(const text &pattern, uint32_t literals, uint32_t window)
{
    std::vector<size_t> places;
    for (size_t i = 0; i < pattern.size(); i++) {
        if (pattern[i] != kAny)
            places.push_back(i);
    }
    if (places.size() < literals)
        return false;
    for (size_t i = 0; i + literals <= places.size(); i++) {
        if (places[i + literals - 1] - places[i] + 1 > window)
            return false;
    }
    return true;
}

/** Is @p at shift @shift within @more, and @more more specific? */
bool generalises(const text &p, const text &more, size_t shift)
{
    for (size_t i = 0; i < p.size(); i++) {
        if (p[i] != kAny && p[i] != more[shift + i])
            return false;
    }
    return p != more;
}

/** By definition: every <L,W> pattern there is; those with no more specific one that occurs as
 * often. */
result by_definition(const text &t, uint32_t literals, uint32_t window, uint32_t support)
{
    result all;
    for (size_t first = 0; first < t.size(); first++) {
        for (size_t length = 1; first + length <= t.size(); length++) {
            for (uint32_t mask = 0; mask < 1u << length; mask++) {
                if (!(mask & 1) || !(mask >> (length - 1) & 1))
                    continue;
                text pattern(length, kAny);
                for (size_t i = 0; i < length; i++) {
                    if (mask >> i & 1)
                        pattern[i] = t[first + i];
                }
                if (!dense(pattern, literals, window) || all.count(pattern))
                    continue;
                const offsets where = occurrences(t, pattern);
                if (where.size() >= support)
                    all[pattern] = where;
            }
        }
    }
    result maximal;
    for (const auto &[p, where] : all) {
        bool redundant = false;
        for (const auto &[more, there] : all) {
            if (there.size() != where.size() || more.size() < p.size())
                continue;
            for (size_t shift = 0; shift + p.size() <= more.size(); shift++)
                redundant = redundant || generalises(p, more, shift);
        }
        if (!redundant)
            maximal[p] = where;
    }
    return maximal;
}

text random_text(zc::groups::dice &dice, uint32_t longest, uint32_t alphabet)
{
    text t(dice.below(longest + 1));
    for (uint32_t &symbol : t)
        symbol = dice.below(alphabet);
    return t;
}

TEST(TeiresiasTest, FindsARepeatedSequence)
{
    const text t = {1, 2, 3, 4, 9, 1, 2, 3, 4};
    const result expected = {{{1, 2, 3, 4}, {0, 5}}};
    EXPECT_EQ(expected, contents(find(t, lwk(3, 3, 2)).get()));
}

TEST(TeiresiasTest, LeavesAPlaceOpenWhereOccurrencesDiffer)
{
    const text t = {1, 2, 7, 4, 5, 9, 1, 2, 8, 4, 5};
    const result expected = {{{1, 2, kAny, 4, 5}, {0, 6}}};
    EXPECT_EQ(expected, contents(find(t, lwk(3, 4, 2)).get()));
    EXPECT_TRUE(contents(find(t, lwk(3, 3, 2)).get()).empty()); /* too sparse for W = 3 */
}

TEST(TeiresiasTest, AgreesWithTheOracleOnRandomTexts)
{
    zc::groups::dice dice(1);
    size_t nr_patterns = 0;
    for (int round = 0; round < 1200; round++) {
        const text t = random_text(dice, 11, 1 + dice.below(4));
        const uint32_t literals = 2 + dice.below(3);
        const uint32_t window = literals + dice.below(4);
        const uint32_t support = 2 + dice.below(2);
        const result expected = by_definition(t, literals, window, support);
        const patterns found = find(t, lwk(literals, window, support));
        EXPECT_EQ(ZCP_PATTERNS_COMPLETE, zcp_patterns_end(found.get()));
        ASSERT_EQ(expected, contents(found.get()))
            << "round " << round << " L " << literals << " W " << window << " K " << support;
        nr_patterns += expected.size();
    }
    EXPECT_GT(nr_patterns, 1000u); /* the oracle had something to say */
}

TEST(TeiresiasTest, AgreesWithTheOracleOnPeriodicTexts)
{
    zc::groups::dice dice(2);
    for (int round = 0; round < 100; round++) {
        text t;
        const uint32_t period = 1 + dice.below(4);
        const uint32_t length = 6 + dice.below(7);
        for (uint32_t i = 0; i < length; i++)
            t.push_back(dice.below(10) == 0 ? 9 : i % period);
        const result expected = by_definition(t, 2, 3, 2);
        ASSERT_EQ(expected, contents(find(t, lwk(2, 3, 2)).get())) << "round " << round;
    }
}

TEST(TeiresiasTest, TakesAnyAlphabetBelow2To31)
{
    const uint32_t large = (1u << 31) - 1;
    const text t = {large, 0, large - 1, 5, large, 0, large - 1};
    const result expected = {{{large, 0, large - 1}, {0, 4}}};
    EXPECT_EQ(expected, contents(find(t, lwk(3, 3, 2)).get()));
}

TEST(TeiresiasTest, RefusesSymbolsAbove)
{
    const text t = {1u << 31};
    zcp_patterns_t *out = nullptr;
    EXPECT_EQ(-EINVAL, zcp_patterns_find(t.data(), t.size(), nullptr, &out));
    EXPECT_EQ(nullptr, out);
}

TEST(TeiresiasTest, RefusesBadParameters)
{
    const text t = {1, 2, 3};
    zcp_patterns_t *out = nullptr;
    const auto refused = [&](const zcp_patterns_params_t &p) {
        return zcp_patterns_find(t.data(), t.size(), &p, &out) == -EINVAL;
    };
    EXPECT_TRUE(refused(lwk(1, 3, 2)));
    EXPECT_TRUE(refused(lwk(4, 3, 2)));
    EXPECT_TRUE(refused(lwk(3, 33, 2)));
    EXPECT_TRUE(refused(lwk(3, 3, 1)));
    zcp_patterns_params_t p = lwk(3, 8, 2);
    p.max_length = 7;
    EXPECT_TRUE(refused(p));
    p = lwk(3, 8, 2);
    p.size = 1;
    EXPECT_TRUE(refused(p));
    EXPECT_EQ(-EINVAL, zcp_patterns_find(t.data(), t.size(), nullptr, nullptr));
}

TEST(TeiresiasTest, AnEmptyTextHasNoPatterns)
{
    const patterns found = find({}, lwk(3, 5, 2));
    EXPECT_EQ(0u, zcp_patterns_count(found.get()));
    EXPECT_EQ(ZCP_PATTERNS_COMPLETE, zcp_patterns_end(found.get()));
}

/* A text with more patterns than anyone can wait for. */
text endless(size_t length)
{
    zc::groups::dice dice(8);
    text t(length);
    for (uint32_t &symbol : t)
        symbol = dice.below(3);
    return t;
}

void expect_part_of_the_truth(const text &t, const zcp_patterns_t *p)
{
    for (const auto &[pattern, where] : contents(p))
        EXPECT_EQ(occurrences(t, pattern), where);
}

TEST(TeiresiasTest, StopsAtItsStepsWithAPartialResult)
{
    const text t = endless(2000);
    auto params = lwk(3, 8, 2);
    params.max_steps = 200000;
    const patterns found = find(t, params);
    EXPECT_EQ(ZCP_PATTERNS_STEPS, zcp_patterns_end(found.get()));
    EXPECT_GT(zcp_patterns_count(found.get()), 0u);
    expect_part_of_the_truth(t, found.get());
    EXPECT_EQ(contents(found.get()), contents(find(t, params).get())) << "deterministic";
}

TEST(TeiresiasTest, StopsWhenTheCallersClockSaysSo)
{
    const text t = endless(2000);
    auto params = lwk(3, 8, 2);
    int calls = 0;
    params.context = &calls;
    params.expired = [](void *context) { return ++*static_cast<int *>(context) == 3 ? 1 : 0; };
    const patterns found = find(t, params);
    EXPECT_EQ(ZCP_PATTERNS_TIME, zcp_patterns_end(found.get()));
    EXPECT_EQ(3, calls);
    expect_part_of_the_truth(t, found.get());
}

TEST(TeiresiasTest, StopsAtItsMemoryWithAPartialResult)
{
    const text t = endless(2000);
    auto params = lwk(3, 8, 2);
    params.max_bytes = 256 << 10;
    const patterns found = find(t, params);
    size_t peak = 0;
    zcp_patterns_cost(found.get(), &peak, nullptr);
    EXPECT_EQ(ZCP_PATTERNS_MEMORY, zcp_patterns_end(found.get()));
    EXPECT_LE(peak, params.max_bytes);
    EXPECT_GT(zcp_patterns_count(found.get()), 0u);
    expect_part_of_the_truth(t, found.get());
}

TEST(TeiresiasTest, RefusesMemoryThatDoesNotHoldItsTables)
{
    const text t = endless(2000);
    auto params = lwk(3, 8, 2);
    params.max_bytes = 1000;
    zcp_patterns_t *out = nullptr;
    EXPECT_EQ(-ENOMEM, zcp_patterns_find(t.data(), t.size(), &params, &out));
}

TEST(TeiresiasTest, StopsAtANumberOfPatterns)
{
    auto params = lwk(3, 8, 2);
    params.max_patterns = 10;
    const patterns found = find(endless(2000), params);
    EXPECT_EQ(ZCP_PATTERNS_COUNT, zcp_patterns_end(found.get()));
    EXPECT_EQ(10u, zcp_patterns_count(found.get()));
}

TEST(TeiresiasTest, CutsPatternsAtTheLongestLength)
{
    text t;
    for (uint32_t i = 0; i < 400; i++)
        t.push_back(i % 10);
    auto params = lwk(3, 5, 4);
    params.max_length = 25;
    const patterns found = find(t, params);
    size_t cut = 0;
    for (size_t i = 0; i < zcp_patterns_count(found.get()); i++) {
        zcp_pattern_t one;
        ASSERT_EQ(0, zcp_patterns_get(found.get(), i, &one));
        EXPECT_LE(one.length, 25u);
        cut += one.cut ? 1 : 0;
    }
    EXPECT_GT(cut, 0u);
    expect_part_of_the_truth(t, found.get());
}

TEST(TeiresiasTest, FindsOneRoundOfALongPeriodicText)
{
    const auto stream = zc::groups::butterfly({64, 100000, 0, 0, 1});
    text t;
    for (const zcp_event_t &e : stream.events)
        t.push_back(e.src * 64 + e.dst);
    const patterns found = find(t, lwk(3, 5, 200));
    EXPECT_EQ(ZCP_PATTERNS_COMPLETE, zcp_patterns_end(found.get()));
    ASSERT_GT(zcp_patterns_count(found.get()), 0u);
    zcp_pattern_t longest{};
    for (size_t i = 0; i < zcp_patterns_count(found.get()); i++) {
        zcp_pattern_t one;
        ASSERT_EQ(0, zcp_patterns_get(found.get(), i, &one));
        longest = one.length > longest.length ? one : longest;
    }
    EXPECT_EQ(384, zcp_fundamental_period(longest.symbols, longest.length));
}

} // namespace
