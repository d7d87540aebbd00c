/* SPDX-License-Identifier: BSD-3-Clause */
#include "few.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>

using zc::migrate::few;

namespace {

bool is_within(const void *at, const void *object, std::size_t bytes)
{
    const auto where = reinterpret_cast<std::uintptr_t>(at);
    const auto begin = reinterpret_cast<std::uintptr_t>(object);
    return where >= begin && where < begin + bytes;
}

TEST(Few, HoldsAsManyAsItWasMadeFor)
{
    for (std::size_t size : {0u, 1u, 7u, 8u, 9u, 5000u}) {
        few<int, 8> all(size);
        ASSERT_EQ(all.size(), size);
        for (std::size_t i = 0; i < size; i++)
            all[i] = static_cast<int>(i);
        for (std::size_t i = 0; i < size; i++)
            ASSERT_EQ(all.data()[i], static_cast<int>(i)) << "of " << size;
    }
}

TEST(Few, AllocatesOnlyWhatIsNotFew)
{
    few<int, 8> all(8), more(9);
    EXPECT_TRUE(is_within(all.data(), &all, sizeof all));
    EXPECT_FALSE(is_within(more.data(), &more, sizeof more));
}

} // namespace
