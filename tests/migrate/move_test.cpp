/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "clock.h"
#include "error.h"
#include "move_transaction.h"
#include "scratch_directory.h"
#include "two_sides.h"

namespace zc::migrate {
namespace {

using nlohmann::json;
using side = two_sides::side;
using steps = std::vector<std::string>;

struct job_ended : std::runtime_error {
    using runtime_error::runtime_error;
};

/** One rank of a job in a move; what the other ranks say is set by the test. */
class one_rank final : public move_party {
  public:
    one_rank(two_sides &with, int rank, std::vector<int> leavers) : with_(with), rank_(rank)
    {
        wanted.kind = request::what::move;
        for (int each : leavers)
            wanted.moves.push_back({each, "there"});
        hello_.moved = true;
        hello_.rank = rank;
        hello_.leavers = std::move(leavers);
        hello_.safe_points = 100;
        hello_.moves = 3;
        chosen.timeout_s = 600; /* of the clock on the wall */
        memory_.assign(1000, 0.25);
        data_.add("plate", memory_.data(), memory_.size(), element::f64);
    }

    void move() { move_transaction(*this, chosen, wanted, hello_).run(); }
    void others_run() { hello_.others_run = true; }
    bool do_others_run() const { return hello_.others_run; }

    request wanted;
    settings chosen;
    bool out_of_memory = false;
    std::string spawn_fails, release_fails, others_at_spawn, others_at_verdict;
    steps done;
    mutable std::optional<std::size_t> steps_before_data; /* it is asked for */
    json answer;                                          /* to the request */
    std::function<std::string(const effort_of_all &)> later;

  private:
    int rank() const noexcept override { return rank_; }
    std::string agree(const std::string &complaint) override
    {
        done.emplace_back("agree");
        const bool first = std::exchange(first_, false);
        return !complaint.empty() ? complaint : first ? others_at_spawn : others_at_verdict;
    }
    std::vector<double> greatest(std::vector<double> values) override { return values; }
    std::vector<double> total(std::vector<double> values) override { return values; }
    std::vector<std::string> gather(const std::string &text) override { return {text}; }
    std::string invite() override { return "invitation"; }
    void introduce(const std::vector<std::string> &) override { done.emplace_back("introduce"); }
    std::unique_ptr<departure> start_successor(const std::vector<std::string> &) override
    {
        done.emplace_back("spawn");
        if (wanted.via == request::way::disk)
            await_file();
        if (!spawn_fails.empty())
            throw error(EIO, spawn_fails);
        if (out_of_memory)
            throw std::bad_alloc();
        return std::make_unique<departure>(
            chosen, std::make_unique<lifeline>(with_.end_of(side::leaver), false, 5), hello_, 1.0);
    }
    /** Nothing but the thread that writes it goes on meanwhile. */
    void await_file()
    {
        for (const double begin = seconds(); seconds() - begin < 60;)
            for (const auto &one : std::filesystem::directory_iterator(chosen.checkpoint_directory))
                if (one.path().extension() == ".h5") {
                    done.emplace_back("written");
                    return;
                }
    }
    const registry &data() const noexcept override
    {
        if (!steps_before_data)
            steps_before_data = done.size();
        return data_;
    }
    image_header header() const override { return {rank_, 4, 100, 7}; }
    void outcome(const std::string &text) override
    {
        done.emplace_back("answer");
        answer = json::parse(text);
    }
    double asked() const noexcept override { return seconds(); }
    double examined() const noexcept override { return seconds(); }
    void let_go() override { done.emplace_back("let go"); }
    void link_up(departure *) override { done.emplace_back("link up"); }
    void release() override
    {
        done.emplace_back("release");
        if (!release_fails.empty())
            throw std::runtime_error(release_fails);
    }
    void give_up_old_world() override { done.emplace_back("give up the old world"); }
    void enter_new_world() override { done.emplace_back("enter the new world"); }
    std::vector<double> rebuild_world(double) override
    {
        done.emplace_back("rebuild");
        return {1, 2};
    }
    void part() override { done.emplace_back("part"); }
    void report_later(std::function<std::string(const effort_of_all &)> text) override
    {
        done.emplace_back("report later");
        later = std::move(text);
    }
    void close_door() override { done.emplace_back("close the door"); }
    void close_socket() override { done.emplace_back("close the socket"); }
    void leave() override { done.emplace_back("leave"); }
    void end_job(const std::string &why) override { throw job_ended(why); }
    void make_progress() override {}

    two_sides &with_;
    int rank_;
    greeting hello_;
    std::vector<double> memory_;
    registry data_;
    bool first_ = true;
};

/* Where the successor does not go on as it should. */
enum class stop { at_greeting, at_proceed, in_data, before_ready, after_ready, after_check, never };
enum class how { exits, is_silent, says_why };

/** A rank that leaves, and its successor. */
class Move : public testing::Test {
  protected:
    explicit Move(int rank = 1, std::vector<int> leavers = {1, 2})
        : rank_(sides_, rank, std::move(leavers))
    {
    }
    void run(stop where = stop::never, how way = how::exits)
    {
        sides_.run([this] { rank_.move(); },
                   [this, where, way] {
                       line_ = std::make_unique<lifeline>(sides_.end_of(side::successor), true, 5);
                       succeed(where, way);
                   });
        EXPECT_FALSE(sides_.hung());
    }
    void expect_refused(const steps &done, const std::string &cause)
    {
        EXPECT_EQ(rank_.done, done);
        EXPECT_EQ(rank_.answer.value("ok", true), false);
        EXPECT_NE(rank_.answer.value("error", "").find(cause), std::string::npos) << rank_.answer;
        EXPECT_EQ(sides_.problem(side::leaver), ""); /* and goes on */
        EXPECT_FALSE(became_rank_);
    }

    two_sides sides_;
    one_rank rank_;
    bool became_rank_ = false, was_abandoned_ = false, has_data_ = false;

  private:
    void stops(how way)
    {
        if (way == how::exits)
            throw two_sides::killed();
        if (way == how::says_why)
            line_->send(word::failed, "no room for 'plate'");
        /* It neither asks nor pings; it listens for the last word, as it may do late. */
        for (int i = 0; way == how::is_silent && i < 1000; i++)
            line_->peer().rest(0);
        line_->drain(word::abandon, kNoLimit);
        was_abandoned_ = true;
        line_->send_until_taken(word::left);
        throw two_sides::killed();
    }

    void take_ping()
    {
        std::optional<connection::message> there;
        for (; !there; line_->peer().rest(0))
            line_->peer().probe(there);
        EXPECT_EQ(there->kind, static_cast<int>(word::ping));
        line_->peer().receive(*there, {});
    }

    void succeed(stop where, how way)
    {
        line_->receive();
        if (where == stop::at_greeting)
            stops(way);
        line_->send(word::here);
        if (line_->receive(kNoLimit).what != word::proceed) {
            was_abandoned_ = line_->is_abandoned();
            line_->send_until_taken(word::left);
            return;
        }
        if (where == stop::at_proceed)
            stops(way);
        if (rank_.do_others_run())
            became_rank_ = line_->receive(kNoLimit).what == word::go;
        std::vector<double> room(1000);
        line_->send(word::ask, R"({"name":"plate","type":"float64","count":1000})");
        if (where == stop::in_data)
            stops(way);
        effort spent;
        line_->receive();
        transfer(*line_).receive(
            {"plate", reinterpret_cast<std::byte *>(room.data()), 1000, element::f64}, spent);
        if (where == stop::before_ready)
            stops(way);
        line_->send(word::ready, R"({"restore_ms":1})");
        if (where == stop::after_ready)
            stops(way);
        if (rank_.do_others_run()) {
            has_data_ = room[999] == 0.25;
            line_->send(word::done, R"({"rebuilt":[3,4]})");
            return;
        }
        if (where == stop::after_check) {
            take_ping();
            stops(way);
        }
        if (line_->receive(kNoLimit).what != word::go) {
            was_abandoned_ = line_->is_abandoned();
            line_->send_until_taken(word::left);
            return;
        }
        became_rank_ = room[999] == 0.25;
        line_->send(word::done, R"({"rebuilt":[3,4]})");
    }

    std::unique_ptr<lifeline> line_;
};

const steps kRefusedAtSpawn = {"spawn", "agree", "answer"};
const steps kRefusedAtVerdict = {"spawn", "agree", "agree", "answer"};
const steps kRefusedAtLast = {"spawn", "agree", "agree", "agree", "answer"};

TEST_F(Move, GoesThroughAllPhasesAndLeavesWhenTheSuccessorIsTheRank)
{
    run();
    EXPECT_EQ(rank_.done, (steps{"spawn", "agree", "agree", "agree", "let go", "link up", "release",
                                 "give up the old world", "leave"}));
    EXPECT_TRUE(became_rank_);
    EXPECT_EQ(rank_.answer, nullptr); /* rank 0 answers */
}

TEST_F(Move, IsRefusedAtSpawnIfThereIsNoSuccessor)
{
    rank_.spawn_fails = "cannot start a successor on there: refused";
    sides_.run([this] { rank_.move(); }, [] {});
    expect_refused(kRefusedAtSpawn, "rank 1: cannot start a successor on there: refused");
}

TEST_F(Move, WritesTheFileWhileTheSuccessorIsStarted)
{
    const scratch_directory place;
    rank_.chosen.checkpoint_directory = place.path();
    rank_.wanted.via = request::way::disk;
    rank_.spawn_fails = "refused";
    sides_.run([this] { rank_.move(); }, [] {});
    expect_refused({"spawn", "written", "agree", "answer"}, "refused");
    EXPECT_TRUE(std::filesystem::is_empty(place.path()));
}

TEST_F(Move, MakesTheImageBeforeTheSuccessorIsStarted)
{
    for (const auto via : {request::way::memory, request::way::image}) {
        rank_.wanted.via = via;
        rank_.spawn_fails = "refused";
        rank_.done.clear();
        sides_.run([this] { rank_.move(); }, [] {});
        expect_refused(kRefusedAtSpawn, "refused");
        if (via == request::way::image)
            EXPECT_EQ(rank_.steps_before_data, std::size_t{0});
        else
            EXPECT_FALSE(rank_.steps_before_data);
    }
}

TEST_F(Move, IsRefusedAtSpawnInWordsIfThereIsNoMemory)
{
    rank_.out_of_memory = true;
    sides_.run([this] { rank_.move(); }, [] {});
    expect_refused(kRefusedAtSpawn, "rank 1: out of memory");
}

TEST_F(Move, IsRefusedAtSpawnIfTheSuccessorExitsBeforeItHasAnswered)
{
    run(stop::at_greeting);
    expect_refused(kRefusedAtSpawn, "rank 1: the successor is gone");
}

TEST_F(Move, IsRefusedAtSpawnIfTheSuccessorIsSilent)
{
    run(stop::at_greeting, how::is_silent);
    expect_refused(kRefusedAtSpawn, "rank 1: the successor has been silent for 5 s");
    EXPECT_TRUE(was_abandoned_);
}

TEST_F(Move, IsRefusedAtSpawnIfAnotherRankHasNoSuccessor)
{
    rank_.others_at_spawn = "rank 2: cannot start a successor on there: refused";
    run();
    expect_refused(kRefusedAtSpawn, rank_.others_at_spawn);
    EXPECT_TRUE(was_abandoned_);
}

TEST_F(Move, IsRefusedInTheVerdictIfTheSuccessorExitsBeforeItAsksForData)
{
    run(stop::at_proceed);
    expect_refused(kRefusedAtVerdict, "rank 1: the successor is gone");
}

TEST_F(Move, IsRefusedInTheVerdictIfTheSuccessorExitsWhileItGetsItsData)
{
    run(stop::in_data);
    expect_refused(kRefusedAtVerdict, "rank 1: the successor is gone");
}

TEST_F(Move, IsRefusedInTheVerdictIfTheSuccessorIsSilentWhileItGetsItsData)
{
    run(stop::in_data, how::is_silent);
    expect_refused(kRefusedAtVerdict, "rank 1: the successor has been silent for 5 s");
    EXPECT_TRUE(was_abandoned_);
}

TEST_F(Move, IsRefusedInTheVerdictWithWhatTheSuccessorSays)
{
    run(stop::before_ready, how::says_why);
    expect_refused(kRefusedAtVerdict, "rank 1: no room for 'plate'");
    EXPECT_TRUE(was_abandoned_);
}

TEST_F(Move, IsRefusedInTheVerdictIfTheSuccessorExitsBeforeItAcknowledges)
{
    run(stop::before_ready);
    expect_refused(kRefusedAtVerdict, "rank 1: the successor is gone");
}

TEST_F(Move, IsRefusedInTheVerdictIfAnothersSuccessorHasNotAcknowledged)
{
    rank_.others_at_verdict = "rank 2: the successor is gone: sending failed";
    run();
    expect_refused(kRefusedAtVerdict, rank_.others_at_verdict);
    EXPECT_TRUE(was_abandoned_);
}

TEST_F(Move, IsRefusedInTheVerdictIfTheSuccessorExitsWhenItHasAcknowledged)
{
    run(stop::after_ready);
    expect_refused(kRefusedAtLast, "rank 1: the successor is gone");
}

TEST_F(Move, IsRefusedInTheVerdictIfTheSuccessorIsSilentWhenItHasAcknowledged)
{
    run(stop::after_ready, how::is_silent);
    expect_refused(kRefusedAtLast, "rank 1: the successor has been silent for 5 s");
    EXPECT_TRUE(was_abandoned_);
}

TEST_F(Move, EndsTheJobIfTheSuccessorIsGoneWhenItIsToBeTheRank)
{
    run(stop::after_check);
    EXPECT_EQ(rank_.done, (steps{"spawn", "agree", "agree", "agree", "let go"}));
    const std::string &why = sides_.problem(side::leaver);
    EXPECT_TRUE(why.starts_with("the move was agreed on, but the successor is gone")) << why;
}

TEST_F(Move, EndsTheJobIfThisRankCannotGoOnWhenItIsMade)
{
    rank_.release_fails = "no more threads";
    run();
    EXPECT_EQ(rank_.done,
              (steps{"spawn", "agree", "agree", "agree", "let go", "link up", "release"}));
    EXPECT_EQ(sides_.problem(side::leaver), "the move was agreed on, but no more threads");
    EXPECT_TRUE(became_rank_);
}

/* ---- rank 0, and ranks that stay ---- */

class MoveOfRankZero : public Move {
  protected:
    MoveOfRankZero() : Move(0, {0}) {}
};

TEST_F(MoveOfRankZero, IsAnsweredByTheOneThatWasAsked)
{
    run();
    EXPECT_EQ(rank_.done, (steps{"introduce", "spawn", "agree", "agree", "agree", "let go",
                                 "link up", "release", "give up the old world", "close the door",
                                 "answer", "close the socket", "leave"}));
    EXPECT_TRUE(became_rank_);
    EXPECT_EQ(rank_.answer.at("ok"), true);
    EXPECT_EQ(rank_.answer.at("safe_point"), 100);
    EXPECT_EQ(rank_.answer.at("epoch"), 4);
    EXPECT_EQ(rank_.answer.at("stall_ms"), 4); /* as the successor has it */
    EXPECT_EQ(rank_.answer.at("moved"), json::parse(R"([{"rank":0,"host":"there"}])"));
    EXPECT_EQ(rank_.answer.at("bytes").at("data"), 8000);
}

TEST(MoveOfOthers, TakesRanksThatStayIntoTheNewWorld)
{
    two_sides none;
    for (int rank : {0, 3}) {
        one_rank stays(none, rank, {1, 2});
        stays.move();
        steps expected = {"agree",
                          "agree",
                          "agree",
                          "link up",
                          "release",
                          "give up the old world",
                          "enter the new world",
                          "rebuild"};
        if (rank == 0) {
            expected.insert(expected.begin(), "introduce");
            expected.emplace_back("answer");
        }
        EXPECT_EQ(stays.done, expected);
    }
}

/* ---- where the others run ---- */

TEST_F(Move, WhereOthersRunHandsItsDataOverInTheNewWorld)
{
    rank_.others_run();
    run();
    EXPECT_EQ(rank_.done, (steps{"spawn", "agree", "agree", "let go", "link up", "release",
                                 "give up the old world", "part", "leave"}));
    EXPECT_TRUE(became_rank_);
    EXPECT_TRUE(has_data_);
}

TEST_F(Move, WhereOthersRunIsRefusedBeforeGo)
{
    rank_.others_run();
    rank_.others_at_verdict = "rank 2: the successor is gone";
    run();
    expect_refused(kRefusedAtVerdict, "rank 2: the successor is gone");
}

class LostData : public Move, public testing::WithParamInterface<stop> {};

TEST_P(LostData, EndsTheJobWhereOthersRun)
{
    rank_.others_run();
    run(GetParam());
    EXPECT_NE(sides_.problem(side::leaver).find("the move was agreed on, but"), std::string::npos)
        << sides_.problem(side::leaver);
    EXPECT_TRUE(became_rank_);
}

INSTANTIATE_TEST_SUITE_P(Move, LostData, testing::Values(stop::in_data, stop::before_ready));

TEST_F(MoveOfRankZero, WhereOthersRunIsAnsweredWhenItsDataHasGone)
{
    rank_.others_run();
    run();
    EXPECT_EQ(rank_.answer.at("others"), "run");
    EXPECT_EQ(rank_.answer.at("stall_ms"), 4);
    EXPECT_EQ(rank_.answer.at("bytes").at("data"), 8000);
}

TEST(MoveOfOthers, WhereTheyRunIsAnsweredWhenTheLeaversHaveToldWhatItTook)
{
    two_sides none;
    one_rank stays(none, 0, {1, 2});
    stays.others_run();
    stays.move();
    EXPECT_EQ(stays.done,
              (steps{"introduce", "agree", "agree", "link up", "release", "give up the old world",
                     "enter the new world", "rebuild", "report later"}));
    EXPECT_EQ(stays.answer, nullptr);
    effort_of_all told;
    told.most = {1, 2, 3, 4};
    told.sum = {100, 7, 200};
    const json answer = json::parse(stays.later(told));
    EXPECT_EQ(answer.at("ok"), true);
    EXPECT_EQ(answer.at("others"), "run");
    EXPECT_EQ(answer.at("phases_ms").at("transfer"), 3);
    EXPECT_EQ(answer.at("bytes").at("data"), 200);
    EXPECT_EQ(answer.at("moved").size(), 2u);
}

TEST(MoveOfOthers, LeavesRanksThatStayWhereTheyAreIfItIsRefused)
{
    two_sides none;
    one_rank at_spawn(none, 0, {1, 2}), at_verdict(none, 0, {1, 2});
    at_spawn.others_at_spawn = "rank 1: cannot";
    at_spawn.move();
    EXPECT_EQ(at_spawn.done, (steps{"introduce", "agree", "answer"}));
    at_verdict.others_at_verdict = "rank 2: cannot";
    at_verdict.move();
    EXPECT_EQ(at_verdict.done, (steps{"introduce", "agree", "agree", "answer"}));
    EXPECT_EQ(at_verdict.answer.at("error"), "rank 2: cannot");
    EXPECT_EQ(at_verdict.answer.at("code"), EIO);
}

} // namespace
} // namespace zc::migrate
