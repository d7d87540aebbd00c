/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <functional>
#include <sys/mman.h>

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
    EXPECT_NE(complaint_of([&] { all.add("x", &x, 0, element::i32); }), "");
    EXPECT_NE(complaint_of([&] { all.add("x", &x, ~0ull / 4, element::i32); }), "");
    EXPECT_TRUE(all.all().empty());
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

} // namespace
} // namespace zc::migrate
