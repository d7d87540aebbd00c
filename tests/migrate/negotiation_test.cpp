/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "search.h"

namespace zc::migrate {
namespace {

using operation = window::operation;
using gathering = negotiation::gathering;

/** Ranks in one thread; each operation on another rank's words is done at once. */
class company {
  public:
    explicit company(int ranks) : words_(static_cast<std::size_t>(ranks))
    {
        for (int r = 0; r < ranks; r++) {
            ranks_.push_back(std::make_unique<negotiation>());
            words_[r] = &ranks_[r]->own_words();
            ranks_[r]->open(std::make_unique<at_once>(words_, r, silent_), 0);
        }
    }
    negotiation &operator[](int rank) { return *ranks_[rank]; }
    /** What is asked of @rank from now on is not answered; 0: all answer. */
    void silence(int rank) { silent_ = rank; }

    /** Rank 0 at @n has a place when this returns; the others are where they are. */
    std::int64_t agree(std::int64_t n)
    {
        ranks_[0]->ring();
        ranks_[0]->hear();
        ranks_[0]->begin(false);
        EXPECT_EQ(ranks_[0]->advance(n), negotiation::progress::found);
        return ranks_[0]->place();
    }

  private:
    class done final : public window::round {
      public:
        done(int others, int silent) : round(others), silent_(silent) {}
        bool is_done() override { return silent_ == 0; }
        bool has_answered(std::size_t i) const override
        {
            return static_cast<int>(i) + 1 != silent_;
        }
        void wait() override {}

      private:
        const int silent_;
    };

    class at_once final : public window {
      public:
        at_once(const std::vector<words *> &all, int rank, const int &silent)
            : all_(all), rank_(rank), silent_(silent)
        {
        }
        void close() override {}
        int rank() const noexcept override { return rank_; }
        int size() const noexcept override { return static_cast<int>(all_.size()); }
        std::unique_ptr<round> start(place where, operation what, std::int64_t value) override
        {
            auto made = std::make_unique<done>(size() - 1, silent_);
            for (std::size_t i = 0; i < made->got.size(); i++) {
                if (!made->has_answered(i))
                    continue;
                auto &word = (*all_[i + 1])[where];
                made->got[i] = word;
                if (what == operation::replace)
                    word = value;
                if (what == operation::add)
                    word += value;
            }
            return made;
        }
        std::int64_t load(place where) noexcept override { return (*all_[rank_])[where]; }
        void store(place where, std::int64_t value) noexcept override
        {
            (*all_[rank_])[where] = value;
        }
        std::int64_t add(place where, std::int64_t value) noexcept override
        {
            return (*all_[rank_])[where].fetch_add(value);
        }

      private:
        const std::vector<words *> &all_;
        int rank_;
        const int &silent_;
    };

    std::vector<window::words *> words_;
    int silent_ = 0;
    std::vector<std::unique_ptr<negotiation>> ranks_;
};

TEST(Negotiation, AgreesOnTheSafePointAfterThatOfTheFarthestRank)
{
    company job(3);
    EXPECT_FALSE(job[1].is_called_at(7));
    EXPECT_FALSE(job[2].is_called_at(5));
    EXPECT_EQ(job.agree(6), 8);
    EXPECT_TRUE(job[2].is_called_at(6));
    EXPECT_EQ(job[2].look(6), negotiation::verdict::ahead);
    EXPECT_EQ(job[2].look(8), negotiation::verdict::meet);
    EXPECT_EQ(job[1].look(9), negotiation::verdict::missed);
}

TEST(Negotiation, AgreesOnTheSafePointAfterThatOfRankZeroIfItIsTheFarthest)
{
    company job(2);
    job[1].count(3);
    EXPECT_EQ(job.agree(9), 10);
}

TEST(Negotiation, IsOverIfARankMakesNoMoreSafePoints)
{
    company job(2);
    job[1].never_again();
    job[0].ring();
    job[0].hear();
    job[0].begin(false);
    EXPECT_EQ(job[0].advance(1), negotiation::progress::finishing);
    job[0].call_off();
    EXPECT_FALSE(job[1].is_called());
}

TEST(Negotiation, WeighsTheRanksBeforeAnyIsCalled)
{
    company job(3);
    for (int r : {0, 1, 2})
        job[r].weigh(10u * static_cast<unsigned>(r) + 1);
    job[2].weigh(5);
    job[0].ring();
    job[0].hear();
    job[0].begin(true);
    EXPECT_EQ(job[0].advance(1), negotiation::progress::weighed);
    EXPECT_EQ(job[0].weights(), (std::vector<std::int64_t>{1, 11, 5}));
    EXPECT_FALSE(job[1].is_called());
    EXPECT_FALSE(job[2].is_called());
    EXPECT_EQ(job[0].advance(1), negotiation::progress::found);
    EXPECT_TRUE(job[2].is_called());
    job[0].call_off();
    /* One that is refused for them. */
    job[0].begin(true);
    EXPECT_EQ(job[0].advance(3), negotiation::progress::weighed);
    job[0].call_off();
    EXPECT_EQ(job[2].look(3), negotiation::verdict::cancelled);
}

TEST(Negotiation, CancelsAProposalThatRanksHaveSeen)
{
    company job(2);
    EXPECT_EQ(job.agree(1), 2);
    EXPECT_EQ(job[1].look(1), negotiation::verdict::ahead);
    job[0].call_off();
    EXPECT_EQ(job[1].look(1), negotiation::verdict::cancelled);
    job[1].settle();
    EXPECT_FALSE(job[1].is_called());
}

TEST(Negotiation, CancelsAProposalThatAnotherRequestHasFollowedWithoutOne)
{
    company job(3);
    EXPECT_EQ(job.agree(1), 2);
    job[0].call_off();
    job[2].never_again();
    job[0].begin(false);
    EXPECT_EQ(job[0].advance(1), negotiation::progress::finishing);
    job[0].call_off();
    EXPECT_EQ(job[1].look(2), negotiation::verdict::cancelled);
}

class Meeting : public testing::Test {
  protected:
    Meeting()
    {
        const std::int64_t place = job_.agree(1);
        for (int r : {1, 2})
            EXPECT_EQ(job_[r].look(place), negotiation::verdict::meet);
    }
    gathering settled()
    {
        gathering known = gathering::waiting;
        for (int step = 0; step < 4 && known == gathering::waiting; step++)
            known = job_[0].gather();
        return known;
    }

    company job_{3};
};

TEST_F(Meeting, BeginsWhenAllHaveArrived)
{
    job_[0].arrive(0);
    job_[1].arrive(0);
    EXPECT_EQ(settled(), gathering::waiting);
    EXPECT_EQ(job_[0].missing(), 2);
    EXPECT_EQ(job_[1].gather(), gathering::waiting);
    job_[2].arrive(0);
    EXPECT_EQ(settled(), gathering::all);
    EXPECT_EQ(job_[1].gather(), gathering::all);
    EXPECT_EQ(job_[2].gather(), gathering::all);
}

TEST_F(Meeting, MissesARankThatDoesNotAnswerRatherThanOneThatHasComeSince)
{
    job_.silence(2);
    job_[0].arrive(0);
    job_[1].arrive(0);
    EXPECT_EQ(settled(), gathering::waiting);
    EXPECT_EQ(job_[0].missing(), 2);
}

TEST_F(Meeting, IsOffIfARankHasLeftBeforeItWasCounted)
{
    job_[1].arrive(0);
    EXPECT_TRUE(job_[1].give_up());
    job_[2].arrive(0);
    job_[0].arrive(0);
    EXPECT_EQ(settled(), gathering::off);
    job_[0].call_off();
    EXPECT_EQ(job_[2].gather(), gathering::off);
}

TEST_F(Meeting, KeepsARankThatHasBeenCounted)
{
    for (int r : {1, 2, 0})
        job_[r].arrive(0);
    EXPECT_EQ(job_[0].gather(), gathering::waiting); /* all are there: counted from here on */
    EXPECT_FALSE(job_[1].give_up());
    EXPECT_EQ(settled(), gathering::all);
    EXPECT_EQ(job_[1].gather(), gathering::all);
}

TEST_F(Meeting, IsOffIfALaterOneIsByTheTimeThatARankLooks)
{
    for (int r : {1, 2, 0})
        job_[r].arrive(0);
    EXPECT_EQ(job_[0].gather(), gathering::waiting);
    EXPECT_FALSE(job_[1].give_up());
    job_[0].call_off();
    job_.agree(3);
    job_[0].call_off();
    EXPECT_EQ(job_[1].gather(), gathering::off);
}

TEST_F(Meeting, IsNotMistakenForAnEarlierAttempt)
{
    for (int r : {1, 2, 0})
        job_[r].arrive(0);
    EXPECT_EQ(settled(), gathering::all);
    job_[0].arrive(1);
    job_[1].arrive(1);
    EXPECT_EQ(settled(), gathering::waiting); /* rank 2 was there the first time only */
    EXPECT_EQ(job_[1].gather(), gathering::waiting);
    job_[2].arrive(1);
    EXPECT_EQ(settled(), gathering::all);
}

} // namespace

namespace sim {
namespace {

/* ---- all that can happen, with few ranks ---- */

enum class ends { refused, either };

/* What can befall two or three ranks, gone through in full: some 7,000 to 150,000 states. */
class AllInterleavings : public testing::Test {
  protected:
    static void hold_in(const scenario &what, ends possible = ends::either)
    {
        search all(what);
        EXPECT_EQ(all.look_for_trouble(kMost), "");
        EXPECT_TRUE(all.is_complete()) << "more than " << kMost << " states";
        EXPECT_EQ(all.some_met(), possible == ends::either);
        EXPECT_TRUE(all.some_refused());
        RecordProperty("states", static_cast<int>(all.states()));
    }

    static constexpr std::size_t kMost = 400'000;
};

TEST_F(AllInterleavings, OfTwoRanksEndInAMeetingOrBecauseTheJobEnds)
{
    hold_in({.ranks = 2, .safe_points = 4});
}

TEST_F(AllInterleavings, OfTwoRanksThatNeedEachOthersMessagesDoNotDeadlock)
{
    hold_in({.ranks = 2, .safe_points = 5, .requests = 2, .exchanges = true});
}

TEST_F(AllInterleavings, OfTwoRanksKeepTwoRequestsApart)
{
    hold_in({.ranks = 2, .safe_points = 4, .requests = 2});
}

TEST_F(AllInterleavings, OfThreeRanksThatNeedEachOthersMessagesDoNotDeadlock)
{
    hold_in({.ranks = 3, .safe_points = 2, .exchanges = true});
}

TEST_F(AllInterleavings, MeetAgainIfMessagesAreInFlight)
{
    hold_in({.ranks = 2, .safe_points = 5, .exchanges = true, .put_off = 1});
}

TEST_F(AllInterleavings, MeetAgainWhenARankHasMoved)
{
    hold_in({.ranks = 2, .safe_points = 4, .requests = 2, .exchanges = true, .mover = 1});
}

TEST_F(AllInterleavings, MeetAgainWhenRankZeroHasMoved)
{
    hold_in({.ranks = 2, .safe_points = 4, .requests = 2, .exchanges = true, .mover = 0});
}

TEST_F(AllInterleavings, AreRefusedForTheStatesOfRanksBeforeAnyIsCalled)
{
    hold_in({.ranks = 2, .safe_points = 3, .requests = 2, .weighs = true, .heavy = 1});
}

TEST_F(AllInterleavings, AreRefusedForTheStatesOfRanksHoweverLateTheseAre)
{
    hold_in({.ranks = 2, .safe_points = 2, .time_passes = true, .weighs = true});
}

TEST_F(AllInterleavings, TakeUpARequestTogetherOrNotAtAllHoweverLateRanksAre)
{
    hold_in({.ranks = 2, .safe_points = 2, .exchanges = true, .time_passes = true});
}

TEST_F(AllInterleavings, MeetAgainAfterFunctionsOfTheProgram)
{
    hold_in({.ranks = 2, .safe_points = 4, .requests = 2, .exchanges = true, .functions = 2});
}

TEST_F(AllInterleavings, AreNotHeldUpForEverByAFunctionThatDoesNotReturn)
{
    hold_in({.ranks = 2, .safe_points = 2, .time_passes = true, .functions = 1});
}

TEST_F(AllInterleavings, AreNotHeldUpForEverByARankThatDoesNotCome)
{
    hold_in({.ranks = 2, .safe_points = 2, .time_passes = true, .silent = 1}, ends::refused);
}

TEST_F(AllInterleavings, AreNotHeldUpForEverIfRankZeroDoesNotCome)
{
    hold_in({.ranks = 2, .safe_points = 2, .time_passes = true, .silent = 0}, ends::refused);
}

/* ---- drawn ones, with more ---- */

class DrawnInterleavings : public testing::Test {
  protected:
    /** Some hundred jobs, or the one of ZCM_SEED. */
    template <typename Job>
    static void hold_in(Job job)
    {
        const char *chosen = std::getenv("ZCM_SEED");
        const std::uint64_t first = chosen ? std::strtoull(chosen, nullptr, 10) : 1;
        int met = 0, refused = 0;
        for (std::uint64_t seed = first; seed < first + (chosen ? 1 : kJobs); seed++) {
            lottery draws(seed);
            world run(job(seed), draws);
            try {
                run.run();
            } catch (const violation &found) {
                const std::size_t length = draws.story().size();
                std::string text;
                for (std::size_t i = length > kShown ? length - kShown : 0; i < length; i++)
                    text += "\n  " + draws.story()[i];
                FAIL() << "ZCM_SEED=" << seed << ": " << found.what() << ", after:" << text;
            }
            met += run.met();
            refused += run.refused();
        }
        EXPECT_TRUE(chosen || (met > 0 && refused > 0)) << met << " met, " << refused << " refused";
    }

    static constexpr std::uint64_t kJobs = 1000;
    static constexpr std::size_t kShown = 80;
};

TEST_F(DrawnInterleavings, OfManyRanksAndRequestsEndWithoutAnyTimePassing)
{
    hold_in([](std::uint64_t seed) {
        return scenario{.ranks = 3 + static_cast<int>(seed % 5),
                        .safe_points = 30,
                        .requests = 4,
                        .exchanges = seed % 3 != 0,
                        .put_off = static_cast<int>(seed % 2),
                        .functions = static_cast<int>(seed % 3),
                        .weighs = seed % 2 == 0,
                        .heavy = static_cast<int>(seed % 8 / 6),
                        .mover = seed % 4 == 0 ? static_cast<int>(seed % 3) : -1};
    });
}

TEST_F(DrawnInterleavings, OfManyRanksAndRequestsEndHoweverLateRanksAre)
{
    hold_in([](std::uint64_t seed) {
        return scenario{.ranks = 3 + static_cast<int>(seed % 5),
                        .safe_points = 30,
                        .requests = 4,
                        .exchanges = seed % 3 == 0,
                        .time_passes = true,
                        .put_off = static_cast<int>(seed % 2),
                        .functions = static_cast<int>(seed % 3),
                        .weighs = seed % 2 == 0,
                        .heavy = static_cast<int>(seed % 8 / 6),
                        .mover = seed % 4 == 0 ? static_cast<int>(seed % 3) : -1};
    });
}

TEST_F(DrawnInterleavings, OfManyRanksEndIfOneIsSilentForLong)
{
    hold_in([](std::uint64_t seed) {
        const int ranks = 3 + static_cast<int>(seed % 5);
        return scenario{.ranks = ranks,
                        .safe_points = 20,
                        .requests = 4,
                        .time_passes = true,
                        .silent = static_cast<int>(seed % static_cast<std::uint64_t>(ranks)),
                        .silent_after = 10};
    });
}

} // namespace
} // namespace sim
} // namespace zc::migrate
