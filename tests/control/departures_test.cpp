/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include "departures.h"

namespace zc::control {
namespace {

std::vector<std::string> hosts_after(std::vector<std::string> host_of, const std::string &host,
                                     const std::vector<std::string> &to)
{
    for (const request::target &one : departures(host_of, host, to))
        host_of[static_cast<std::size_t>(one.rank)] = one.host;
    return host_of;
}

using list = std::vector<std::string>;

TEST(DeparturesTest, GoToTheOtherHostsOfTheJobWhichGetEquallyMany)
{
    EXPECT_EQ(hosts_after({"a", "b", "c", "a", "b", "a"}, "a", {}),
              (list{"c", "b", "c", "b", "b", "c"}));
}

TEST(DeparturesTest, GoWhereTheUserSays)
{
    EXPECT_EQ(hosts_after({"a", "a", "b"}, "a", {"d", "a"}), (list{"d", "d", "b"}));
}

TEST(DeparturesTest, AreNoneWithoutAnotherHostOrARankThere)
{
    EXPECT_TRUE(departures({"a", "a"}, "a", {}).empty());
    EXPECT_TRUE(departures({"a", "b"}, "c", {}).empty());
    EXPECT_TRUE(departures({}, "a", {"b"}).empty());
    EXPECT_EQ(emptiest({}, {"a"}), "");
}

} // namespace
} // namespace zc::control
