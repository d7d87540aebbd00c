/* SPDX-License-Identifier: BSD-3-Clause */
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "zc_spawned.h"
}

namespace {

using words = std::vector<std::string>;

/** The command and its arguments. */
words held(const char *holder, const char *folders, const char *command,
           std::vector<const char *> arguments)
{
    arguments.push_back(nullptr);
    const MPIDI_ZC_spawned_t spawned = {holder, folders, command,
                                        const_cast<char *const *>(arguments.data())};
    std::vector<char> room(MPIDI_ZC_spawned_room(&spawned));
    char *first = nullptr;
    char **more = MPIDI_ZC_spawned_words(&spawned, room.data(), &first);
    words all = {first};
    for (; *more != nullptr; more++)
        all.emplace_back(*more);
    return all;
}

TEST(Spawned, TheHolderComesFirst)
{
    EXPECT_EQ(held("zc-hold", nullptr, "./a", {}), (words{"zc-hold", "./a"}));
    EXPECT_EQ(
        held("/opt/a b/zc-hold\n--key\nthe key\n--lazy", nullptr, "./a", {"two words", "", "-x"}),
        (words{"/opt/a b/zc-hold", "--key", "the key", "--lazy", "./a", "two words", "", "-x"}));
}

TEST(Spawned, TheHolderLooksForTheCommand)
{
    EXPECT_EQ(held("zc-hold\n--lazy", "one:two", "a", {"1"}),
              (words{"zc-hold", "--lazy", "--path", "one:two", "a", "1"}));
}

TEST(Spawned, ACommandMayLookLikeAnOption)
{
    EXPECT_EQ(held("zc-hold\n--lazy", "one", "-a", {"1"}),
              (words{"zc-hold", "--lazy", "--path", "one", "--", "-a", "1"}));
    EXPECT_EQ(held("zc-hold", nullptr, "-a", {}), (words{"zc-hold", "--", "-a"}));
}

TEST(Spawned, ACommandMayHaveNoArguments)
{
    const MPIDI_ZC_spawned_t spawned = {"zc-hold", nullptr, "a", nullptr};
    std::vector<char> room(MPIDI_ZC_spawned_room(&spawned));
    char *first = nullptr;
    char **more = MPIDI_ZC_spawned_words(&spawned, room.data(), &first);
    EXPECT_STREQ(first, "zc-hold");
    EXPECT_STREQ(more[0], "a");
    EXPECT_EQ(more[1], nullptr);
}

TEST(Spawned, NothingIsHeldTwice)
{
    for (const char *holder : {"zc-hold", "/opt/zc-hold", "/opt/my-hold\n--key\n/a/b"}) {
        EXPECT_TRUE(MPIDI_ZC_spawned_is_held(holder, "zc-hold")) << holder;
        EXPECT_TRUE(MPIDI_ZC_spawned_is_held(holder, "./x/zc-hold")) << holder;
        EXPECT_FALSE(MPIDI_ZC_spawned_is_held(holder, "./zc-holder")) << holder;
        EXPECT_FALSE(MPIDI_ZC_spawned_is_held(holder, "zc-hold/program")) << holder;
    }
    EXPECT_TRUE(MPIDI_ZC_spawned_is_held("/opt/my-hold\n--key\n/a/b", "my-hold"));
    EXPECT_FALSE(MPIDI_ZC_spawned_is_held("/opt/my-hold\n--key\n/a/b", "b"));
    EXPECT_FALSE(MPIDI_ZC_spawned_is_held("/opt/my-hold\n--key\n/a/b", "hold"));
}

} // namespace
