/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include <gtest/gtest.h>

using namespace zcl;

TEST(WireTest, PadsPayloadsToTheirClass)
{
    for (std::uint64_t at : {0ULL, 1ULL, 31ULL, 4064ULL, 4095ULL, (1ULL << 40) + 77})
        for (std::uint32_t page_class : {0u, 1u, 16u, 4095u}) {
            const std::uint32_t pad = padding(at, page_class);
            EXPECT_LT(pad, ZCL_PAGE);
            EXPECT_EQ((at + sizeof(header) + pad) % ZCL_PAGE, page_class);
        }
    EXPECT_EQ(padding(5, ZCL_CLASS_NONE), 0u);
}

TEST(WireTest, OneBitMakesAnotherSecret)
{
    unsigned char a[ZCL_SECRET_BYTES] = {1, 2, 3}, b[ZCL_SECRET_BYTES] = {1, 2, 3};
    EXPECT_TRUE(same_secret(a, b));
    for (unsigned bit = 0; bit < 8 * ZCL_SECRET_BYTES; bit++) {
        b[bit / 8] = static_cast<unsigned char>(b[bit / 8] ^ 1u << bit % 8);
        EXPECT_FALSE(same_secret(a, b));
        b[bit / 8] = static_cast<unsigned char>(b[bit / 8] ^ 1u << bit % 8);
    }
}
