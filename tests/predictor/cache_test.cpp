/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache.h"
#include "hash.h"

#include <gtest/gtest.h>

namespace {

using zc::predict::cache;
using small_cache = cache<uint64_t, uint64_t>;

constexpr uint64_t kSpread = UINT64_MAX / 41; /* 40 keys over all sets */
constexpr size_t kOneSet = small_cache::kWays * small_cache::kEntryBytes;

TEST(CacheTest, NewEntriesAreZero)
{
    small_cache cache(kOneSet);
    EXPECT_EQ(nullptr, cache.find(1, 1));
    ASSERT_NE(nullptr, cache.insert(1, 1));
    EXPECT_EQ(0u, *cache.find(1, 1));
}

TEST(CacheTest, ReplacesTheLeastRecentlyUsed)
{
    small_cache cache(kOneSet);
    for (uint64_t key = 0; key < small_cache::kWays; key++)
        cache.insert(key, key);
    cache.touch(0, 0);
    cache.insert(100, 100);
    EXPECT_NE(nullptr, cache.find(0, 0));
    EXPECT_EQ(nullptr, cache.find(1, 1));
}

TEST(CacheTest, AReplacedEntryStartsFromZero)
{
    small_cache cache(kOneSet);
    for (uint64_t key = 0; key < small_cache::kWays; key++)
        *cache.insert(key, key) = 7;
    EXPECT_EQ(0u, *cache.insert(100, 100));
}

TEST(CacheTest, NeverReplacesPinnedEntries)
{
    const auto pinned = [](uint64_t value) { return value != 0; };
    small_cache cache(kOneSet);
    for (uint64_t key = 0; key < small_cache::kWays; key++)
        *cache.insert(key, key, pinned) = key != 3;
    EXPECT_NE(nullptr, cache.insert(100, 100, pinned));
    EXPECT_EQ(nullptr, cache.find(3, 3));
    *cache.touch(100, 100) = 1;
    EXPECT_EQ(nullptr, cache.insert(200, 200, pinned));
}

TEST(CacheTest, KeysOfOneHashStayApart)
{
    small_cache cache(kOneSet);
    *cache.insert(1, 42) = 10;
    *cache.insert(2, 42) = 20;
    EXPECT_EQ(10u, *cache.find(1, 42));
    EXPECT_EQ(20u, *cache.find(2, 42));
}

TEST(CacheTest, AnIndexLeadsBackToItsEntry)
{
    small_cache cache(10 * kOneSet);
    for (uint64_t key = 0; key < 40; key++)
        *cache.insert(key, key * kSpread) = key;
    const uint64_t *value = cache.find(20, 20 * kSpread);
    ASSERT_NE(nullptr, value);
    EXPECT_EQ(20u, cache.key_at(cache.index(value)));
    EXPECT_EQ(20u, cache.value_at(cache.index(value)));
}

/* Many more keys than a set has ways begin in one set: none is lost while there is room. */
TEST(CacheTest, KeysThatDoNotFitIntoOneSetGoToAnother)
{
    small_cache cache(100 * kOneSet);
    constexpr uint64_t kKeys = 40;
    for (uint64_t key = 0; key < kKeys; key++)
        cache.insert(key, key * 0x6180339);
    for (uint64_t key = 0; key < kKeys; key++)
        EXPECT_NE(nullptr, cache.find(key, key * 0x6180339)) << key;
}

TEST(CacheTest, HardlyAnyKeyIsLostWhileAThirdIsFree)
{
    small_cache cache(100 * kOneSet);
    const uint64_t keys = cache.size() * 2 / 3;
    size_t held = 0;
    for (uint64_t key = 0; key < keys; key++)
        cache.insert(key, zc::predict::mix(1, key));
    for (uint64_t key = 0; key < keys; key++)
        held += cache.find(key, zc::predict::mix(1, key)) != nullptr;
    EXPECT_GE(held, keys * 99 / 100);
}

TEST(CacheTest, SparesWhatWasUsedOfLate)
{
    const auto pinned = [](uint64_t) { return false; };
    small_cache cache(kOneSet);
    for (uint64_t key = 0; key < small_cache::kWays; key++)
        cache.insert(key, key);
    EXPECT_EQ(nullptr, cache.insert(100, 100, pinned, small_cache::kWays));
    for (uint64_t key = 1; key < small_cache::kWays; key++)
        cache.touch(key, key);
    EXPECT_NE(nullptr, cache.insert(100, 100, pinned, small_cache::kWays));
    EXPECT_EQ(nullptr, cache.find(0, 0));
}

TEST(CacheTest, ANeglectedEntryIsTheFirstToGo)
{
    small_cache cache(kOneSet);
    for (uint64_t key = 0; key < small_cache::kWays; key++)
        cache.insert(key, key);
    cache.neglect(cache.index(cache.find(5, 5)));
    cache.insert(100, 100);
    EXPECT_EQ(nullptr, cache.find(5, 5));
    EXPECT_NE(nullptr, cache.find(0, 0));
}

TEST(CacheTest, ANeglectedEntryThatMovesIsStillFound)
{
    small_cache cache(kOneSet);
    *cache.insert(1, 1) = 10;
    cache.neglect(cache.index(cache.find(1, 1)));
    *cache.insert(2, 2) = 20; /* likes the same place */
    ASSERT_NE(nullptr, cache.find(1, 1));
    EXPECT_EQ(10u, *cache.find(1, 1));
    EXPECT_EQ(20u, *cache.find(2, 2));
    EXPECT_NE(nullptr, cache.insert(3, 3));
    EXPECT_NE(nullptr, cache.find(1, 1));
}

TEST(CacheTest, APinnedEntryStaysWhereItIs)
{
    const auto pinned = [](uint64_t value) { return value == 10; };
    small_cache cache(kOneSet);
    uint64_t *first = cache.insert(1, 1, pinned);
    *first = 10;
    cache.neglect(cache.index(first));
    cache.insert(2, 2, pinned);
    EXPECT_EQ(first, cache.find(1, 1));
}

TEST(CacheTest, TakesNoMoreMemoryThanGiven)
{
    for (const size_t sets : {1, 2, 100})
        EXPECT_LE(small_cache(sets * kOneSet + 1).bytes(), sets * kOneSet + 1);
}

} // namespace
