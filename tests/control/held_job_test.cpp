/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include "error.h"
#include "held_job.h"

namespace zc::control {
namespace {

holder::held_rank rank(const std::string &job, int number, int size, int pid)
{
    holder::held_rank one;
    one.job = job;
    one.rank = number;
    one.size = size;
    one.pid = pid;
    return one;
}

holder::held_survey two_jobs()
{
    holder::held_survey found;
    found.ranks = {rank("a", 0, 3, 10), rank("a", 1, 3, 11), rank("b", 0, 1, 12)};
    found.hosts = {{"tcp://h2:1", "h2"}};
    found.silent = {"tcp://h3:1"};
    return found;
}

template <class F>
std::string reason(int code, F act)
{
    try {
        act();
    } catch (const error &problem) {
        EXPECT_EQ(problem.code(), code);
        return problem.what();
    }
    ADD_FAILURE() << "it is not refused";
    return {};
}

void expect_in(const std::string &text, const std::string &part)
{
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(HeldJobTest, FindsTheOnlyJobOrTheOneThatIsNamed)
{
    holder::held_survey found = two_jobs();
    EXPECT_EQ(the_held_job(found, "b"), "b");
    found.ranks.pop_back();
    EXPECT_EQ(the_held_job(found, ""), "a");
}

/** What the only job has spawned is named by who means it. */
TEST(HeldJobTest, FindsTheJobThatHasSpawnedTheOthers)
{
    holder::held_survey found = two_jobs();
    for (holder::held_rank &each : found.ranks)
        each.first = "a";
    EXPECT_EQ(the_held_job(found, ""), "a");
    EXPECT_EQ(the_held_job(found, "b"), "b");
    found.ranks[2].first = "b";
    expect_in(reason(ENOENT, [&] { the_held_job(found, ""); }), "several jobs");
    found.ranks.erase(found.ranks.begin(), found.ranks.begin() + 2);
    found.ranks[0].first = "a"; /* of which no rank was found */
    EXPECT_EQ(the_held_job(found, ""), "b");
}

TEST(HeldJobTest, SaysWhatThereIs)
{
    expect_in(reason(ENOENT, [] { the_held_job(two_jobs(), ""); }), "several jobs");
    const std::string unknown = reason(ENOENT, [] { the_held_job(two_jobs(), "c"); });
    expect_in(unknown, "no rank of job c is below zc-hold; there are a b");
    const std::string none = reason(ENOENT, [] { the_held_job({}, ""); });
    expect_in(none, "no rank is below zc-hold");
}

TEST(HeldJobTest, GivesTheRanksInTheOrderInWhichTheyAreNamed)
{
    const auto ranks = the_held_ranks(two_jobs(), "a", {1, 0});
    ASSERT_EQ(ranks.size(), 2u);
    EXPECT_EQ(ranks[0].pid, 11);
    EXPECT_EQ(ranks[1].pid, 10);
}

TEST(HeldJobTest, NamesTheRankThatIsNotThere)
{
    expect_in(reason(ENOENT,
                     [] {
                         the_held_ranks(two_jobs(), "a", {0, 7});
                     }),
              "no such rank: 7; job a has 0 to 2");
    const std::string missing = reason(ENOENT, [] { the_held_ranks(two_jobs(), "a", {2}); });
    expect_in(missing, "rank 2 of job a is not below zc-hold, or its host was not asked");
    expect_in(missing, "h2");
    expect_in(missing, "no zc-hold --listen answers at tcp://h3:1");
    expect_in(reason(EINVAL, [] { the_held_ranks(two_jobs(), "a", {1, 1}); }), "named twice");
    holder::held_survey twice = two_jobs();
    twice.ranks.push_back(rank("a", 1, 3, 99));
    expect_in(reason(ENOENT, [&] { the_held_ranks(twice, "a", {1}); }), "several zc-hold");
}

} // namespace
} // namespace zc::control
