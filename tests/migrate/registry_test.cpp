/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "error.h"
#include "registry.h"

namespace zc::migrate {
namespace {

std::string complaint_of(const std::function<void()> &action)
{
    try {
        action();
        return "";
    } catch (const error &problem) {
        return problem.what();
    }
}

TEST(RegistryTest, NamesBothOfAnOverlap)
{
    double data[10];
    registry all;
    all.add("a", data, 5, element::f64);
    EXPECT_EQ(complaint_of([&] { all.add("b", data + 4, 5, element::f64); }),
              "memory of 'b' overlaps that of 'a'");
    EXPECT_EQ(complaint_of([&] { all.add("b", data + 5, 5, element::f64); }), "");
    EXPECT_EQ(all.bytes(), 80u);
}

TEST(RegistryTest, ReplacingMayOverlapItself)
{
    double data[10];
    registry all;
    all.add("a", data, 5, element::f64);
    all.replace("a", data + 2, 8);
    EXPECT_EQ(all.find("a")->count, 8u);
    EXPECT_NE(complaint_of([&] { all.replace("b", data, 1); }), "");
}

TEST(RegistryTest, RefusesBadNamesAndSizes)
{
    int x = 0;
    registry all;
    for (const char *name : {"", "a/b", "."})
        EXPECT_NE(complaint_of([&] { all.add(name, &x, 1, element::i32); }), "") << name;
    EXPECT_NE(complaint_of([&] { all.add(std::string(128, 'x'), &x, 1, element::i32); }), "");
    EXPECT_NE(complaint_of([&] { all.add("x", nullptr, 1, element::i32); }), "");
    EXPECT_NE(complaint_of([&] { all.add("x", &x, ~0ull / 4, element::i32); }), "");
    EXPECT_TRUE(all.all().empty());
}

TEST(RegistryTest, WithoutElementsTakesNoMemory)
{
    double data[10];
    registry all;
    all.add("a", data, 10, element::f64);
    all.add("empty", data, 0, element::f64);
    all.add("nowhere", nullptr, 0, element::f64);
    EXPECT_EQ(all.bytes(), 80u);
    all.check_mapped();
    EXPECT_NE(complaint_of([&] { all.replace("empty", data, 1); }), "");
    all.remove("empty");
    EXPECT_EQ(complaint_of([&] { all.add("b", data + 9, 1, element::f64); }),
              "memory of 'b' overlaps that of 'a'");
    all.replace("a", data, 0);
    EXPECT_EQ(complaint_of([&] { all.add("b", data + 9, 1, element::f64); }), "");
    EXPECT_EQ(complaint_of([&] { all.replace("a", data, 9); }), "");
    EXPECT_EQ(all.bytes(), 80u);
}

TEST(RegistryTest, UnmappedMemoryIsNamed)
{
    const std::size_t bytes = 1 << 16;
    void *x = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(x, MAP_FAILED);
    registry all;
    all.add("x", x, bytes, element::byte);
    EXPECT_EQ(complaint_of([&] { all.check_mapped(); }), "");
    munmap(static_cast<std::byte *>(x) + bytes / 2, bytes / 2);
    EXPECT_NE(complaint_of([&] { all.check_mapped(); }).find("'x' is not there"),
              std::string::npos);
    munmap(x, bytes / 2);
}

TEST(RegistryTest, ReplacingMayNotReachIntoItsNeighbours)
{
    std::int32_t data[30];
    registry all;
    all.add("a", data, 10, element::i32);
    all.add("b", data + 10, 10, element::i32);
    all.add("c", data + 20, 10, element::i32);
    EXPECT_EQ(complaint_of([&] { all.replace("b", data + 5, 10); }),
              "memory of 'b' overlaps that of 'a'");
    EXPECT_EQ(complaint_of([&] { all.replace("b", data + 12, 9); }),
              "memory of 'b' overlaps that of 'c'");
    EXPECT_EQ(complaint_of([&] { all.replace("b", data, 30); }),
              "memory of 'b' overlaps that of 'c'");
    all.remove("c");
    EXPECT_EQ(complaint_of([&] { all.replace("b", data + 12, 18); }), "");
    EXPECT_EQ(complaint_of([&] { all.add("d", data + 10, 2, element::i32); }), "");
    EXPECT_EQ(all.bytes(), (10u + 18 + 2) * 4);
}

TEST(RegistryTest, OverlapsAreFoundWhereverTheyAre)
{
    /* Against the definition, with many drawn ones. */
    std::vector<std::byte> memory(200);
    registry all;
    struct range {
        std::size_t begin, end;
    };
    std::map<std::string, range> there;
    std::uint32_t seed = 1;
    const auto draw = [&seed](std::size_t below) {
        seed = seed * 1664525 + 1013904223;
        return (seed >> 8) % below;
    };
    std::size_t refused = 0, taken = 0;
    for (int i = 0; i < 20000; i++) {
        const std::string name(1, static_cast<char>('a' + draw(26)));
        const std::size_t begin = draw(190), length = 1 + draw(10);
        const bool known = there.contains(name);
        if (known && draw(3) == 0) {
            all.remove(name);
            there.erase(name);
            continue;
        }
        bool free = true;
        for (const auto &[other, at] : there)
            free = free && (other == name || begin >= at.end || begin + length <= at.begin);
        const std::string said = complaint_of([&] {
            if (known)
                all.replace(name, memory.data() + begin, length);
            else
                all.add(name, memory.data() + begin, length, element::byte);
        });
        ASSERT_EQ(said.empty(), free) << i << ": " << said;
        if (free)
            there[name] = {begin, begin + length};
        (free ? taken : refused)++;
    }
    EXPECT_GT(refused, 1000u);
    EXPECT_GT(taken, 1000u);
}

TEST(RegistryTest, OfADerivedTypeAllIsItsOwn)
{
    double data[40];
    registry all;
    const auto column = std::make_shared<layout>(
        std::vector<layout::part>{{0, element::f64, 1}, {80, element::f64, 1}}, 88);
    all.add({"column", reinterpret_cast<std::byte *>(data + 2), 2, element::byte, column});
    EXPECT_EQ(all.bytes(), 32u);
    EXPECT_EQ(complaint_of([&] { all.add("b", data + 4, 1, element::f64); }),
              "memory of 'b' overlaps that of 'column'");
    EXPECT_EQ(complaint_of([&] { all.add("b", data + 24, 1, element::f64); }), "");
    EXPECT_EQ(complaint_of([&] { all.add("c", data, 2, element::f64); }), "");
    EXPECT_EQ(all.replace("column", data + 25, 1).type_name(), "float64[2]");
}

TEST(RegistryTest, TakesAHundredThousandNames)
{
    constexpr std::size_t kMany = 100'000;
    std::vector<std::int64_t> data(kMany);
    registry all;
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kMany; i++)
        all.add("cell " + std::to_string(i * 7919 % kMany), &data[i * 7919 % kMany], 1,
                element::i64);
    all.check_mapped();
    for (std::size_t i = 0; i < kMany; i += 2)
        all.remove("cell " + std::to_string(i));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(all.all().size(), kMany / 2);
    /* A pass over all of them for each took 100 s here; the machine may be busy. */
    EXPECT_LT(took.count(), 10);
}

} // namespace
} // namespace zc::migrate
