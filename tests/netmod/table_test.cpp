/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <vector>

extern "C" {
#include "zc_table.h"
}

namespace {

struct Entry {
    int value = 0;
    MPIDI_ZC_link_t link = {};
};

class Table : public ::testing::Test {
  protected:
    ~Table() override { MPIDI_ZC_table_free(&table_); }

    Entry *add(uint64_t number)
    {
        entries_.push_back(std::make_unique<Entry>());
        Entry *entry = entries_.back().get();
        entry->link.number = number;
        MPIDI_ZC_table_add(&table_, &entry->link);
        return entry;
    }

    Entry *find(uint64_t number)
    {
        return MPIDI_ZC_TABLE_ENTRY(MPIDI_ZC_table_find(&table_, number), Entry, link);
    }

    size_t longest() const
    {
        size_t most = 0;
        for (size_t i = 0; table_.chains && i <= table_.last; ++i) {
            size_t length = 0;
            for (const MPIDI_ZC_link_t *at = table_.chains[i]; at; at = at->next)
                ++length;
            most = std::max(most, length);
        }
        return most;
    }

    MPIDI_ZC_table_t table_ = {};
    std::vector<std::unique_ptr<Entry>> entries_;
    std::mt19937_64 random_{20261126};
};

TEST_F(Table, IsEmptyAtFirst)
{
    EXPECT_EQ(find(0), nullptr);
    EXPECT_EQ(MPIDI_ZC_table_next(&table_, nullptr), nullptr);
}

TEST_F(Table, FindsWhatWasAddedAndNothingElse)
{
    std::map<uint64_t, Entry *> expected;
    for (int i = 0; i < 10000; ++i) {
        const uint64_t number = random_();
        if (expected.count(number) == 0)
            expected[number] = add(number);
    }
    for (const auto &[number, entry] : expected)
        EXPECT_EQ(find(number), entry);
    for (int i = 0; i < 10000; ++i) {
        const uint64_t number = random_();
        if (expected.count(number) == 0)
            EXPECT_EQ(find(number), nullptr);
    }
}

TEST_F(Table, ForgetsWhatWasRemoved)
{
    std::vector<Entry *> all(3000);
    for (Entry *&entry : all)
        entry = add(random_());
    std::shuffle(all.begin(), all.end(), random_);
    for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(table_.nr, all.size() - i);
        MPIDI_ZC_table_remove(&table_, &all[i]->link);
        EXPECT_EQ(find(all[i]->link.number), nullptr);
        if (i + 1 < all.size())
            EXPECT_EQ(find(all[i + 1]->link.number), all[i + 1]);
    }
    EXPECT_EQ(MPIDI_ZC_table_next(&table_, nullptr), nullptr);
}

TEST_F(Table, RemovesNothingThatIsNotThere)
{
    Entry other;
    other.link.number = 7;
    add(7);
    MPIDI_ZC_table_remove(&table_, &other.link);
    EXPECT_EQ(table_.nr, 1U);
    EXPECT_NE(find(7), nullptr);
}

TEST_F(Table, GoesThroughAllOnce)
{
    for (const int count : {1, 2, 63, 64, 65, 1000}) {
        MPIDI_ZC_table_free(&table_);
        for (int i = 0; i < count; ++i)
            add(random_())->value = 0;
        int seen = 0;
        for (MPIDI_ZC_link_t *at = MPIDI_ZC_table_next(&table_, nullptr); at;
             at = MPIDI_ZC_table_next(&table_, at)) {
            EXPECT_EQ(MPIDI_ZC_TABLE_ENTRY(at, Entry, link)->value++, 0);
            ++seen;
        }
        EXPECT_EQ(seen, count);
    }
}

/* A search looks at one chain. With 100,000 random numbers the longest has a dozen entries, and
 * with counted ones all have one. */
TEST_F(Table, SearchesAFewEntriesHoweverManyThereAre)
{
    for (int i = 0; i < 100000; ++i)
        add(random_());
    EXPECT_LE(longest(), 16U);
    MPIDI_ZC_table_free(&table_);
    for (int i = 0; i < 65536; ++i)
        add(static_cast<uint64_t>(i));
    EXPECT_EQ(longest(), 1U);
}

} // namespace
