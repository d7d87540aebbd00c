/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"

namespace {

int64_t period(const std::vector<uint32_t> &text)
{
    return zcp_fundamental_period(text.data(), text.size());
}

TEST(FundamentalTest, FindsThePeriod)
{
    EXPECT_EQ(0, period({}));
    EXPECT_EQ(1, period({7}));
    EXPECT_EQ(1, period({7, 7, 7}));
    EXPECT_EQ(2, period({1, 2, 1, 2}));
    EXPECT_EQ(3, period({1, 2, 3, 1, 2, 3, 1})); /* the last round is cut short */
    EXPECT_EQ(4, period({1, 1, 1, 2}));
}

TEST(FundamentalTest, DontCaresEqualOnlyThemselves)
{
    EXPECT_EQ(2, period({1, ZCP_DONT_CARE, 1, ZCP_DONT_CARE, 1}));
    EXPECT_EQ(5, period({1, ZCP_DONT_CARE, 1, 2, 3}));
}

TEST(FundamentalTest, AgreesWithTheDefinition)
{
    zc::groups::dice dice(3);
    for (int round = 0; round < 500; round++) {
        std::vector<uint32_t> text(1 + dice.below(12));
        for (uint32_t &symbol : text)
            symbol = dice.below(2);
        size_t smallest = 1;
        const auto repeats = [&text](size_t p) {
            for (size_t i = p; i < text.size(); i++) {
                if (text[i] != text[i - p])
                    return false;
            }
            return true;
        };
        while (!repeats(smallest))
            smallest++;
        EXPECT_EQ(static_cast<int64_t>(smallest), period(text));
    }
}

} // namespace
