/* SPDX-License-Identifier: BSD-3-Clause */
#include "levenshtein.h"

#include <algorithm>

#include "support.h"

using zc::groups::levenshtein;

namespace {

using text = std::vector<uint32_t>;

size_t distance(const text &a, const text &b, size_t limit)
{
    return levenshtein(a, b, limit, std::pmr::new_delete_resource());
}

/** The textbook recurrence, whole. */
size_t by_definition(const text &a, const text &b)
{
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); i++) {
        for (size_t j = 0; j <= b.size(); j++) {
            if (i == 0 || j == 0)
                d[i][j] = i + j;
            else
                d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
                                    d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
        }
    }
    return d[a.size()][b.size()];
}

TEST(LevenshteinTest, CountsEdits)
{
    EXPECT_EQ(0u, distance({}, {}, 9));
    EXPECT_EQ(3u, distance({1, 2, 3}, {}, 9));
    EXPECT_EQ(1u, distance({1, 2, 3}, {1, 3}, 9));
    EXPECT_EQ(2u, distance({1, 2, 3, 4}, {2, 3, 4, 5}, 9));
}

TEST(LevenshteinTest, AgreesWithTheDefinitionWithinAnyLimit)
{
    zc::groups::dice dice(5);
    for (int round = 0; round < 3000; round++) {
        text a(dice.below(12));
        text b(dice.below(12));
        for (text *each : {&a, &b}) {
            for (uint32_t &symbol : *each)
                symbol = dice.below(3);
        }
        const size_t limit = dice.below(13);
        const size_t most = std::min(limit, std::max(a.size(), b.size()));
        EXPECT_EQ(std::min(by_definition(a, b), most + 1), distance(a, b, limit));
    }
}

} // namespace
