/* SPDX-License-Identifier: BSD-3-Clause */

/* The fuzz target on fixed seeds, for every compiler and every run of the tests. */
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "fuzz_events.h"

namespace {

class FuzzTest : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Seeds, FuzzTest, testing::Range(0u, 40u));

TEST_P(FuzzTest, KeepsItsPromises)
{
    std::mt19937 random(GetParam());
    std::vector<uint8_t> data(20000 + random() % 40000);
    const uint32_t variety =
        2 + static_cast<uint32_t>(random() % 254); /* few different bytes: much recurs */
    for (uint8_t &byte : data)
        byte = static_cast<uint8_t>(random() % variety);
    data[0] = static_cast<uint8_t>(GetParam()); /* the kind */
    play_events(data.data(), data.size());
}

TEST(FuzzEdgeTest, TakesTheShortestInputs)
{
    for (size_t size = 0; size < 40; size++) {
        const std::vector<uint8_t> zeros(size);
        play_events(zeros.data(), size);
        const std::vector<uint8_t> ones(size, 0xff);
        play_events(ones.data(), size);
    }
}

} // namespace
