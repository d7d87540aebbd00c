/* SPDX-License-Identifier: BSD-3-Clause */
#include "slots.h"

#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <vector>

using zc::migrate::slots;

namespace {

struct object {
    int value = 0;
    void reset() { value = 0; }
};

using table = slots<object, 11, 4>;

TEST(Slots, AnObjectIsFoundByItsNumberAloneAndStaysWhereItIs)
{
    table all;
    const auto number = all.take();
    ASSERT_NE(number, 0u);
    object *const one = all.find(number);
    one->value = 5;
    for (int i = 0; i < 100; i++)
        ASSERT_NE(all.find(all.take()), one);
    EXPECT_EQ(all.find(number), one);
    EXPECT_EQ(&all[number], one);
    EXPECT_EQ(one->value, 5);
    EXPECT_EQ(all.find(0), nullptr);
    EXPECT_EQ(all.find(number + table::kIndices), nullptr);
}

TEST(Slots, ANumberThatWasGivenBackIsNotTakenForANewOne)
{
    table all;
    const auto first = all.take();
    all.find(first)->value = 1;
    all.give_back(first);
    EXPECT_EQ(all.find(first), nullptr);
    const auto second = all.take();
    EXPECT_NE(second, first);
    EXPECT_EQ(all.find(first), nullptr);
    EXPECT_EQ(all.find(second)->value, 0);
    all.give_back(first); /* again: nothing */
    EXPECT_NE(all.find(second), nullptr);
    EXPECT_EQ(all.used(), 1u);
}

TEST(Slots, AllCanBeTakenAndNoMore)
{
    table all;
    std::set<std::uint32_t> numbers;
    for (std::uint32_t i = 1; i < table::kIndices; i++)
        EXPECT_TRUE(numbers.insert(all.take()).second);
    EXPECT_EQ(numbers.count(0), 0u);
    EXPECT_EQ(all.take(), 0u);
    all.give_back(*numbers.begin());
    EXPECT_NE(all.take(), 0u);
}

TEST(Slots, ANumberOfAnotherProcessCanBeTakenAndIsNotHandedOut)
{
    table all;
    const std::uint32_t wanted = 3u * table::kIndices + 7;
    EXPECT_TRUE(all.take(wanted));
    EXPECT_FALSE(all.take(wanted));
    EXPECT_FALSE(all.take(2u * table::kIndices + 7)); /* the same index */
    EXPECT_FALSE(all.take(0));
    for (int i = 0; i < 20; i++) {
        const auto other = all.take();
        EXPECT_NE(other % table::kIndices, 7u);
    }
    ASSERT_NE(all.find(wanted), nullptr);
    all.give_back(wanted);
    EXPECT_EQ(all.find(wanted), nullptr);
    EXPECT_TRUE(all.take(wanted)); /* and again, though its index waits to be used */
    for (int i = 0; i < 20; i++)
        EXPECT_NE(all.take() % table::kIndices, 7u);
}

TEST(Slots, EachIsVisitedOnce)
{
    table all;
    std::set<std::uint32_t> numbers, seen;
    for (int i = 0; i < 1500; i++)
        numbers.insert(all.take());
    for (auto at = numbers.begin(); at != numbers.end();) {
        if (*at % 3 == 0) {
            all.give_back(*at);
            at = numbers.erase(at);
        } else {
            ++at;
        }
    }
    all.for_each([&](std::uint32_t number, const object &) { seen.insert(number); });
    EXPECT_EQ(seen, numbers);
}

TEST(Slots, ThreadsTakeFindAndGiveBack)
{
    slots<object, 16, 6> all;
    all.threads();
    std::vector<std::jthread> workers;
    std::atomic<int> wrong{0};
    for (int id = 1; id <= 4; id++)
        workers.emplace_back([&, id] {
            for (int i = 0; i < 20000; i++) {
                const auto number = all.take();
                object *one = all.find(number);
                if (!one || one->value != 0) {
                    wrong++;
                    continue;
                }
                one->value = id;
                if (all.find(number) != one || one->value != id)
                    wrong++;
                all.give_back(number);
            }
        });
    workers.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(all.used(), 0u);
}

} // namespace
