/* SPDX-License-Identifier: BSD-3-Clause */
#include "known_pages.h"

#include <string>

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "forked.h"

namespace zc::holder {
namespace {

TEST(KnownPagesTest, FindsAPageByItsContent)
{
    known_pages known;
    const std::string page(kPage, 'a');
    EXPECT_FALSE(page_finder(known).find(page));
    EXPECT_TRUE(known.add(known.sum_of(page), 8 * kPage).is_new);
    EXPECT_EQ(page_finder(known).find(std::string(kPage, 'a')), 8 * kPage);
}

TEST(KnownPagesTest, KeepsThePlaceWhereAPageWasFirst)
{
    known_pages known;
    const std::string page(kPage, 'a');
    known.add(known.sum_of(page), 0);
    const known_pages::added again = known.add(known.sum_of(page), kPage);
    EXPECT_FALSE(again.is_new);
    EXPECT_EQ(again.place, 0u);
    EXPECT_EQ(page_finder(known).find(page), 0u);
    EXPECT_EQ(known.size(), 1u);
}

TEST(KnownPagesTest, TellsPagesApartByAnyBit)
{
    known_pages known;
    std::string page(kPage, '\0');
    known.add(known.sum_of(page), 0);
    for (std::size_t bit = 0; bit < kPage * 8; bit += 7) {
        page[bit / 8] = static_cast<char>(page[bit / 8] ^ (1 << bit % 8));
        ASSERT_FALSE(page_finder(known).find(page)) << bit;
        page[bit / 8] = static_cast<char>(page[bit / 8] ^ (1 << bit % 8));
    }
    EXPECT_TRUE(page_finder(known).find(page));
}

TEST(KnownPagesTest, FindsEachOfMany)
{
    known_pages known;
    constexpr std::uint64_t kMany = 100000;
    for (std::uint64_t i = 0; i < kMany; i++)
        ASSERT_TRUE(known.add(known.sum_of(page_of(i)), i * kPage).is_new);
    for (std::uint64_t i = 0; i < kMany; i++)
        ASSERT_EQ(page_finder(known).find(page_of(i)), i * kPage);
    EXPECT_FALSE(page_finder(known).find(page_of(kMany)));
}

/** A host may be configured so, and then OpenSSL finds no Poly1305 for the others. */
TEST(KnownPagesTest, DoesNotDependOnWhatOpensslIsToPrefer)
{
    ASSERT_EQ(EVP_set_default_properties(nullptr, "fips=yes"), 1);
    EXPECT_EQ(EVP_MAC_fetch(nullptr, "POLY1305", nullptr), nullptr);
    EXPECT_NO_THROW({
        known_pages known;
        known.add(known.sum_of(page_of(0)), 0);
        EXPECT_EQ(page_finder(known).find(page_of(0)), 0u);
    });
    EVP_set_default_properties(nullptr, "");
}

} // namespace
} // namespace zc::holder
