/* SPDX-License-Identifier: BSD-3-Clause */
extern "C" {
#include "handle_table.h"
}

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <unordered_map>

namespace {

/* Against a map of the C++ library, with handles as close as MPI's. */
TEST(TableTest, HoldsWhatAMapHolds)
{
    zct_table table;
    ASSERT_TRUE(zct_table_init(&table, sizeof(std::uint64_t)));
    std::unordered_map<std::uintptr_t, std::uint64_t> map;
    std::mt19937_64 random(6);
    for (int i = 0; i < 300000; i++) {
        /* Keys 0 and ~0 too. */
        const std::uintptr_t key = random() % 3000 - 1;
        if (random() % 3 && map.size() < 2000) {
            auto *value = static_cast<std::uint64_t *>(zct_table_insert(&table, key));
            ASSERT_NE(value, nullptr);
            *value = map[key] = random();
        } else {
            void *there = i % 2 ? zct_table_find(&table, key) : nullptr;
            if (there)
                zct_table_remove_found(&table, there);
            else
                zct_table_remove(&table, key);
            map.erase(key);
        }
        const std::uintptr_t asked = random() % 3000 - 1;
        const auto *found = static_cast<std::uint64_t *>(zct_table_find(&table, asked));
        const auto there = map.find(asked);
        ASSERT_EQ(found != nullptr, there != map.end());
        if (found) {
            ASSERT_EQ(*found, there->second);
        }
        ASSERT_EQ(table.nr_used, map.size());
    }
    std::free(table.slots);
}

} // namespace
