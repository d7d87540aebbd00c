/* SPDX-License-Identifier: BSD-3-Clause */
#include "journal.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <string>

#include "error.h"

using zc::error;
using zc::migrate::journal;

namespace {

std::vector<std::byte> bytes_of(const std::string &text)
{
    std::vector<std::byte> found(text.size());
    std::memcpy(found.data(), text.data(), text.size());
    return found;
}

std::string text_of(journal::reader from)
{
    const auto bytes = from.get_span(from.left());
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

using arguments = std::vector<std::int64_t>;

journal recorded()
{
    journal one(std::size_t{1} << 16);
    EXPECT_TRUE(one.note("MPI_Bcast", arguments{4, 0, 7}, 0, bytes_of("input")));
    EXPECT_TRUE(one.note("~group", arguments{1}, 0, bytes_of("g")));
    EXPECT_TRUE(one.note("MPI_Barrier", arguments{7}, 3, {}));
    return one;
}

std::string problem_of(journal &from, const char *name, const arguments &with)
{
    try {
        from.next(name, with);
    } catch (const error &problem) {
        EXPECT_EQ(problem.code(), EBADMSG);
        return problem.what();
    }
    return "";
}

TEST(Journal, CallsAreAnsweredInTheirOrder)
{
    journal from(recorded().bytes());
    auto first = from.next("MPI_Bcast", arguments{4, 0, 7});
    EXPECT_EQ(first.code, 0);
    EXPECT_EQ(text_of(first.returned), "input");
    EXPECT_EQ(text_of(from.next("~group", arguments{1}).returned), "g");
    EXPECT_FALSE(from.is_at_end());
    EXPECT_EQ(from.next("MPI_Barrier", arguments{7}).code, 3);
    EXPECT_TRUE(from.is_at_end());
    EXPECT_EQ(from.calls(), 3u);
}

TEST(Journal, AnotherCallIsAnErrorThatNamesBoth)
{
    journal from(recorded().bytes());
    EXPECT_EQ(problem_of(from, "MPI_Reduce", {4, 0, 7}),
              "call 1 of its initialisation is MPI_Reduce(), and the predecessor's was "
              "MPI_Bcast()");
    EXPECT_NE(problem_of(from, "MPI_Bcast", {4, 1, 7})
                  .find("number 2 of what is compared was 0 in the predecessor and is 1"),
              std::string::npos);
    EXPECT_NE(problem_of(from, "MPI_Bcast", {4}).find("other arguments"), std::string::npos);
    EXPECT_EQ(problem_of(from, "MPI_Bcast", {4, 0, 7}), "");
}

TEST(Journal, LocalCallsNeedNotBeMadeAgain)
{
    journal from(recorded().bytes());
    EXPECT_FALSE(from.skip_local("~group"));
    EXPECT_EQ(problem_of(from, "MPI_Bcast", {4, 0, 7}), "");
    EXPECT_EQ(problem_of(from, "MPI_Barrier", {7}), "");
    EXPECT_FALSE(from.skip_local("~group"));
}

TEST(Journal, NothingIsAnsweredAfterTheEnd)
{
    journal from(std::vector<std::byte>{});
    EXPECT_TRUE(from.is_at_end());
    EXPECT_NE(problem_of(from, "MPI_Barrier", {7}).find("had ended by then"), std::string::npos);
}

TEST(Journal, ARecordThatIsTooLongIsDropped)
{
    journal one(std::size_t{200});
    int noted = 0;
    while (one.note("MPI_Barrier", arguments{7}, 0, {}))
        noted++;
    EXPECT_GE(noted, 2);
    EXPECT_TRUE(one.is_full());
    EXPECT_TRUE(one.bytes().empty());
    EXPECT_FALSE(one.note("MPI_Barrier", arguments{7}, 0, {}));
    EXPECT_TRUE(one.bytes().empty());
}

TEST(Journal, DamageIsAnErrorWhereverItIs)
{
    const std::vector<std::byte> whole = recorded().bytes();
    for (std::size_t length = 0; length < whole.size(); length++) {
        journal from(std::vector(whole.begin(), whole.begin() + static_cast<long>(length)));
        EXPECT_THROW(
            {
                from.next("MPI_Bcast", arguments{4, 0, 7});
                from.next("~group", arguments{1});
                from.next("MPI_Barrier", arguments{7});
            },
            error)
            << length;
    }
    for (std::size_t at = 0; at < whole.size(); at++) {
        std::vector<std::byte> damaged = whole;
        damaged[at] ^= std::byte{0xff};
        journal from(damaged);
        try { /* it may go unnoticed in what is returned, but nothing is read past the end */
            from.next("MPI_Bcast", arguments{4, 0, 7});
            from.next("~group", arguments{1});
            from.next("MPI_Barrier", arguments{7});
        } catch (const error &) {
        }
    }
}

} // namespace
