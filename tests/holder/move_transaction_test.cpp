/* SPDX-License-Identifier: BSD-3-Clause */
#include "move_transaction.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace zc::holder {
namespace {

using namespace std::chrono_literals;
using phase = move_transaction::phase;

const nlohmann::json kExamined = {{"said", "examined"},
                                  {"needs", nlohmann::json::object()},
                                  {"copies", true},
                                  {"refused", nlohmann::json::array()}};
const nlohmann::json kImage = {{"image", "tcp://b:1"}, {"key", "a secret"}};

nlohmann::json said(const char *what)
{
    return {{"said", what}};
}

nlohmann::json failed()
{
    return {{"said", "failed"}, {"why", "a reason"}};
}

/** A source and a target that do as they are told, and what became of each copy. */
struct world : move_parties {
    std::vector<std::string> source_asked, target_asked;
    nlohmann::json last_asked; /* of the source */
    std::vector<std::pair<std::uint64_t, bool>> records;
    bool handed_over = false, record_fails = false;
    nlohmann::json result;
    std::vector<bool> ready_said; /* whether for the last time */
    std::chrono::steady_clock::time_point now{};
    move_transaction move;

    explicit world(std::chrono::milliseconds waits = 0ms,
                   nlohmann::json with = nlohmann::json::array(),
                   std::chrono::milliseconds within = 0ms)
        : move(*this, 4, now, 10s, waits, std::move(with), within)
    {
    }

    void ask_source(const nlohmann::json &request) override
    {
        source_asked.push_back(request.at("do"));
        last_asked = request;
    }
    void ready(bool last) override { ready_said.push_back(last); }
    void prepare(const nlohmann::json &) override { target_asked.emplace_back("prepare"); }
    void ask_target(const nlohmann::json &request) override
    {
        const std::string what = request.at("do");
        if (what == "go") {
            EXPECT_FALSE(records.empty()) << "a token without a record";
            EXPECT_EQ(request.at("incarnation"), records.back().first);
        }
        target_asked.push_back(what);
    }
    void commit(std::uint64_t incarnation, bool for_target) override
    {
        if (record_fails)
            throw std::runtime_error("the disk is full");
        records.emplace_back(incarnation, for_target);
    }
    void hand_over() override
    {
        EXPECT_TRUE(!records.empty() && records.back().second);
        handed_over = true;
    }
    void finished(const nlohmann::json &what) override { result = what; }

    bool asked(const std::vector<std::string> &of, const std::string &what) const
    {
        return std::find(of.begin(), of.end(), what) != of.end();
    }
    /** Copies that have a token: never two. */
    int tokens() const { return asked(source_asked, "thaw") + asked(target_asked, "go"); }
};

/** A move's steps, in order. */
const std::vector<std::function<void(world &)>> kSteps = {
    [](world &w) { w.move.begin(); },
    [](world &w) { w.move.source_said(kExamined, w.now); },
    [](world &w) { w.move.prepared(kImage, w.now); },
    [](world &w) { w.move.source_said(said("detached"), w.now); },
    [](world &w) { w.move.source_said(said("sent"), w.now); },
    [](world &w) { w.move.target_said(said("restored"), w.now); },
    [](world &w) { w.move.target_said(said("bound"), w.now); },
};
constexpr std::size_t kDetached = 4, kSent = 5, kCommitted = 6; /* steps until then */

void go(world &w, std::size_t steps, std::size_t from = 0)
{
    for (std::size_t i = from; i < steps; i++)
        kSteps[i](w);
}

TEST(MoveTransactionTest, MovesARank)
{
    world w;
    go(w, kSteps.size());
    EXPECT_EQ(w.source_asked, (std::vector<std::string>{"examine", "leave", "send"}));
    EXPECT_EQ(w.target_asked, (std::vector<std::string>{"prepare", "go"}));
    EXPECT_EQ(w.records, (std::vector<std::pair<std::uint64_t, bool>>{{5, true}}));
    EXPECT_TRUE(w.handed_over);
    EXPECT_TRUE(w.result.at("ok"));
    EXPECT_EQ(w.result.at("incarnation"), 5);
}

TEST(MoveTransactionTest, LeavesMemoryOutIfTheTargetCanFillIt)
{
    for (const bool lazy : {true, false}) {
        world w;
        go(w, 2);
        nlohmann::json image = kImage;
        if (lazy)
            image["lazy"] = true;
        w.move.prepared(image, w.now);
        w.move.source_said(said("detached"), w.now);
        EXPECT_EQ(w.last_asked.at("do"), "send");
        EXPECT_EQ(w.last_asked.at("lazy"), lazy);
    }
}

/* Of another build, which has another way, or of none that is known. */
TEST(MoveTransactionTest, IsRefusedByAHostThatTakesImagesOtherwise)
{
    nlohmann::json none = kImage, number = kImage, nowhere = kImage;
    none.erase("key");
    number["key"] = 7;
    nowhere.erase("image");
    for (const nlohmann::json &image : {none, number, nowhere}) {
        world w;
        go(w, 2);
        w.move.prepared(image, w.now);
        EXPECT_FALSE(w.result.value("ok", true));
        EXPECT_EQ(w.result.at("why"), "the other host: its zc-hold is of another build");
        EXPECT_FALSE(w.asked(w.source_asked, "leave"));
    }
}

TEST(MoveTransactionTest, SaysThatMemoryCouldNotBeLeftOut)
{
    world w;
    go(w, 2);
    nlohmann::json image = kImage;
    image["lazy"] = true;
    w.move.prepared(image, w.now);
    w.move.source_said(said("detached"), w.now);
    w.move.source_said({{"said", "sent"}, {"lazy", false}, {"not_lazy", "a reason"}}, w.now);
    w.move.target_said(said("restored"), w.now);
    w.move.target_said(said("bound"), w.now);
    EXPECT_TRUE(w.result.at("ok"));
    EXPECT_EQ(w.result.at("lazy"), false);
    EXPECT_EQ(w.result.at("not_lazy"), "a reason");
}

/* ---- memory that is sent while the rank runs ---- */

constexpr std::uint64_t kMuch = 100 << 10; /* KiB */

/** Until the source is asked to copy, or to leave. */
void prepare(world &w, std::uint64_t kib, std::uint64_t room)
{
    nlohmann::json examined = kExamined, image = kImage;
    examined["needs"]["kib"] = kib;
    image["room"] = room;
    w.move.begin();
    w.move.source_said(examined, w.now);
    w.move.prepared(image, w.now);
}

TEST(MoveTransactionTest, CopiesMemoryFirst)
{
    world w;
    prepare(w, kMuch, 2 * kMuch);
    EXPECT_EQ(w.source_asked, (std::vector<std::string>{"examine", "copy"}));
    EXPECT_EQ(w.last_asked.at("to"), kImage.at("image"));
    EXPECT_EQ(w.last_asked.at("most"), 2 * kMuch << 10);
    EXPECT_EQ(w.last_asked.at("track"), false);
    w.move.tick(w.now + 1000s); /* that takes as long as it does */
    EXPECT_EQ(w.move.now(), phase::COPYING);
    w.move.source_said({{"said", "copied"}, {"bytes", 7}, {"rounds", 2}, {"ms", 5.0}}, w.now);
    EXPECT_EQ(w.source_asked, (std::vector<std::string>{"examine", "copy", "leave"}));
    go(w, kSteps.size(), 3);
    EXPECT_TRUE(w.result.at("ok"));
    EXPECT_FALSE(w.asked(w.source_asked, "stay"));
    EXPECT_EQ(w.result.at("copied"), 7);
    EXPECT_EQ(w.result.at("rounds"), 2);
    EXPECT_EQ(w.result.at("copy_ms"), 5.0);
}

TEST(MoveTransactionTest, CopiesNothingIfThatIsNotWorthItOrNotPossible)
{
    for (const auto &[kib, room] :
         {std::pair{kMuch, std::uint64_t{0}}, {std::uint64_t{1000}, kMuch}}) {
        world w;
        prepare(w, kib, room);
        EXPECT_EQ(w.source_asked, (std::vector<std::string>{"examine", "leave"}));
    }
}

/** Which would say that there is no such request. */
TEST(MoveTransactionTest, AsksNoHolderToCopyThatCannot)
{
    world w;
    nlohmann::json examined = kExamined, image = kImage;
    examined.erase("copies");
    examined["needs"]["kib"] = kMuch;
    image["room"] = 2 * kMuch;
    w.move.begin();
    w.move.source_said(examined, w.now);
    w.move.prepared(image, w.now);
    EXPECT_EQ(w.source_asked, (std::vector<std::string>{"examine", "leave"}));
}

/** What has been sent is kept. */
TEST(MoveTransactionTest, AsksAgainIfAnotherRankIsAwayAfterTheCopy)
{
    nlohmann::json refusal = failed();
    refusal["again"] = true;
    world w;
    prepare(w, kMuch, 2 * kMuch);
    w.move.source_said(said("copied"), w.now);
    std::size_t asked = w.source_asked.size();
    for (auto pause = 250ms; pause < 4s; pause *= 2) {
        w.move.source_said(refusal, w.now);
        w.move.tick(w.now += pause - 1ms);
        EXPECT_EQ(w.source_asked.size(), asked);
        w.move.tick(w.now += 1ms);
        EXPECT_EQ(w.source_asked.size(), ++asked);
        EXPECT_EQ(w.source_asked.back(), "leave");
        w.move.tick(w.now += 1ms);
        EXPECT_EQ(w.source_asked.size(), asked);
    }
    go(w, kSteps.size(), 3);
    EXPECT_TRUE(w.result.at("ok"));
    EXPECT_FALSE(w.result.contains("again"));

    world other;
    prepare(other, kMuch, true);
    other.move.source_said(said("copied"), other.now);
    other.move.source_said(refusal, other.now);
    other.move.tick(other.now + 11s);
    EXPECT_EQ(other.result.at("why"), "a reason");
    EXPECT_EQ(other.result.at("again"), true);
    EXPECT_EQ(other.source_asked.back(), "stay");
}

/** The rank runs, and is told to forget the other host. */
TEST(MoveTransactionTest, StaysIfWhatIsCopiedToIsLost)
{
    const std::vector<std::function<void(world &)>> fails = {
        [](world &w) { w.move.source_said(failed(), w.now); },
        [](world &w) { w.move.target_said(failed(), w.now); },
        [](world &w) { w.move.target_lost("a reason", w.now); },
    };
    for (const bool leaving : {false, true}) {
        for (const auto &one : fails) {
            world w;
            prepare(w, kMuch, 2 * kMuch);
            if (leaving)
                w.move.source_said(said("copied"), w.now);
            one(w);
            EXPECT_EQ(w.source_asked.back(), "stay");
            EXPECT_TRUE(w.asked(w.target_asked, "end"));
            EXPECT_EQ(w.tokens(), 0);
            EXPECT_TRUE(w.records.empty());
            EXPECT_FALSE(w.result.at("ok"));
        }
    }
    world w;
    prepare(w, kMuch, 2 * kMuch);
    EXPECT_TRUE(w.move.source_lost("a reason", w.now));
    EXPECT_FALSE(w.result.at("ok"));
}

/* ---- ranks that leave together ---- */

using asks = std::vector<std::string>;
using readies = std::vector<bool>;
constexpr auto kWaits = 60s;
const nlohmann::json kCopied = {{"said", "copied"}, {"ms", 7500.0}};

TEST(MoveTransactionTest, WaitsForTheOthersWhenItIsReady)
{
    world w(kWaits);
    go(w, 3);
    EXPECT_EQ(w.move.now(), phase::READY);
    EXPECT_EQ(w.ready_said, readies{true});
    EXPECT_EQ(w.source_asked, asks{"examine"});
    w.move.tick(w.now += 50s);
    EXPECT_EQ(w.move.now(), phase::READY);
    w.move.go(w.now);
    EXPECT_EQ(w.source_asked, (asks{"examine", "leave"}));
    w.move.go(w.now);
    go(w, kSteps.size(), 3);
    EXPECT_TRUE(w.result.at("ok"));
    EXPECT_EQ(w.result.at("wait_ms"), 50000.0);
    EXPECT_EQ(w.source_asked, (asks{"examine", "leave", "send"}));
}

/** What is promised for its image is for others then, even if it leaves later. */
TEST(MoveTransactionTest, SaysThatARankStaysThatDoesNotLeaveInTime)
{
    nlohmann::json examined = kExamined;
    examined["copies"] = true;
    world w;
    w.move.begin();
    w.move.source_said(examined, w.now);
    w.move.prepared(kImage, w.now);
    EXPECT_EQ(w.source_asked.back(), "leave");
    w.move.tick(w.now += 11s);
    EXPECT_EQ(w.source_asked.back(), "stay");
    EXPECT_EQ(w.result.at("ok"), false);
}

/* So that it does not come back by one of them. */
TEST(MoveTransactionTest, TellsTheRankWhichOthersLeave)
{
    world w(kWaits, {2, 5});
    go(w, 3);
    w.move.go(w.now);
    EXPECT_EQ(w.source_asked.back(), "leave");
    EXPECT_EQ(w.last_asked.at("with"), (nlohmann::json{2, 5}));
    world alone;
    go(alone, 3);
    EXPECT_EQ(alone.last_asked.at("do"), "leave");
    EXPECT_EQ(alone.last_asked.at("with"), nlohmann::json::array());
}

TEST(MoveTransactionTest, CopiesOnceMoreWhenTheOthersAreReadyAndWaitsAgain)
{
    world w(kWaits);
    prepare(w, kMuch, 2 * kMuch);
    EXPECT_EQ(w.last_asked.at("waits"), true);
    EXPECT_EQ(w.ready_said, readies{});
    w.move.source_said(said("ready"), w.now += 3s);
    EXPECT_EQ(w.ready_said, readies{false});
    w.move.go(w.now += 4s);
    EXPECT_EQ(w.move.now(), phase::FINISHING);
    EXPECT_EQ(w.source_asked, (asks{"examine", "copy", "finish"}));
    w.move.tick(w.now += 1000s); /* that takes as long as it does */
    w.move.go(w.now);            /* to a question before */
    w.move.source_said(kCopied, w.now);
    EXPECT_EQ(w.move.now(), phase::READY);
    EXPECT_EQ(w.ready_said, (readies{false, true}));
    w.move.go(w.now += 2s);
    EXPECT_EQ(w.source_asked, (asks{"examine", "copy", "finish", "leave"}));
    go(w, kSteps.size(), 3);
    EXPECT_TRUE(w.result.at("ok"));
    EXPECT_EQ(w.result.at("wait_ms"), 6000.0);
    EXPECT_EQ(w.result.at("copy_ms"), 3500.0);
}

TEST(MoveTransactionTest, WaitsNoLongerThanItMay)
{
    world w(kWaits);
    go(w, 3);
    w.move.tick(w.now += kWaits);
    EXPECT_EQ(w.move.now(), phase::READY);
    w.move.tick(w.now += 1ms);
    EXPECT_EQ(w.source_asked.back(), "leave");

    for (const auto before : {61s, 50s}) { /* in both times together */
        world other(kWaits);
        prepare(other, kMuch, 2 * kMuch);
        other.move.source_said(said("ready"), other.now);
        other.move.tick(other.now += before);
        EXPECT_EQ(other.move.now() == phase::FINISHING, before > kWaits);
        other.move.go(other.now);
        other.move.source_said(kCopied, other.now);
        if (before < kWaits) {
            EXPECT_EQ(other.move.now(), phase::READY);
            other.move.tick(other.now += 10s);
            EXPECT_EQ(other.move.now(), phase::READY);
            other.move.tick(other.now += 1ms);
        }
        EXPECT_EQ(other.source_asked.back(), "leave");
    }
}

/** What has asked for it is gone. */
TEST(MoveTransactionTest, WaitsForNobodyIfNobodyWaitsForIt)
{
    for (const std::size_t steps : {1, 2}) {
        world w(kWaits);
        go(w, steps);
        w.move.wait_no_longer(w.now);
        go(w, kSteps.size(), steps);
        EXPECT_TRUE(w.result.at("ok"));
        EXPECT_EQ(w.ready_said, readies{});
        EXPECT_FALSE(w.result.contains("wait_ms"));
        EXPECT_FALSE(w.asked(w.source_asked, "finish"));
    }
    world w(kWaits);
    prepare(w, kMuch, 2 * kMuch);
    w.move.wait_no_longer(w.now);
    EXPECT_EQ(w.source_asked.back(), "finish"); /* or it would copy until it is told to */
    w.move.source_said(said("ready"), w.now);   /* which it has said before it heard that */
    EXPECT_EQ(w.move.now(), phase::COPYING);
    w.move.source_said(kCopied, w.now);
    EXPECT_EQ(w.source_asked.back(), "leave");
    EXPECT_EQ(w.ready_said, readies{});

    for (const bool finishing : {false, true}) {
        world other(kWaits);
        prepare(other, kMuch, 2 * kMuch);
        other.move.source_said(said("ready"), other.now);
        if (finishing)
            other.move.go(other.now);
        other.move.wait_no_longer(other.now);
        EXPECT_EQ(other.source_asked, (asks{"examine", "copy", "finish"}));
        other.move.source_said(kCopied, other.now);
        EXPECT_EQ(other.source_asked.back(), "leave");
    }
}

TEST(MoveTransactionTest, OneThatLeavesAloneIsNeverReady)
{
    world w;
    prepare(w, kMuch, 2 * kMuch);
    EXPECT_EQ(w.last_asked.at("waits"), false);
    w.move.source_said(kCopied, w.now);
    go(w, kSteps.size(), 3);
    EXPECT_EQ(w.ready_said, readies{});
    EXPECT_EQ(w.source_asked, (asks{"examine", "copy", "leave", "send"}));
    EXPECT_FALSE(w.result.contains("wait_ms"));
}

/** What has passed before it is copied counts. */
TEST(MoveTransactionTest, SaysHowLongItMayTake)
{
    world w(0ms, {}, 30s);
    w.now += 4s;
    prepare(w, kMuch, 2 * kMuch);
    EXPECT_EQ(w.last_asked.at("within_ms"), 26000);
    world late(0ms, {}, 3s);
    late.now += 4s;
    prepare(late, kMuch, 2 * kMuch);
    EXPECT_EQ(late.last_asked.at("within_ms"), 0);
    world free;
    prepare(free, kMuch, 2 * kMuch);
    EXPECT_FALSE(free.last_asked.contains("within_ms"));
    nlohmann::json outrun = kCopied;
    outrun["ended"] = "outrun";
    for (world *each : {&w, &free}) {
        each->move.source_said(outrun, each->now);
        go(*each, kSteps.size(), 3);
        EXPECT_EQ(each->result.at("copy_ended"), "outrun");
        EXPECT_TRUE(each->result.at("ok")) << "however late it is";
    }
    EXPECT_TRUE(w.result.contains("late_ms"));
    EXPECT_FALSE(free.result.contains("late_ms"));
}

TEST(MoveTransactionTest, WaitsForOthersNoLongerThanItMayTake)
{
    world w(kWaits, {}, 30s);
    go(w, 3);
    w.move.tick(w.now += 30s);
    EXPECT_EQ(w.move.now(), phase::READY);
    w.move.tick(w.now += 1ms);
    EXPECT_EQ(w.source_asked.back(), "leave");

    world copied(kWaits, {}, 30s); /* which leaves time for the rest */
    prepare(copied, kMuch, 2 * kMuch);
    nlohmann::json ready = said("ready");
    ready["rest_ms"] = 12000;
    copied.move.source_said(ready, copied.now);
    copied.move.tick(copied.now += 18s);
    EXPECT_EQ(copied.move.now(), phase::READY);
    copied.move.tick(copied.now += 1ms);
    EXPECT_EQ(copied.source_asked.back(), "finish");
}

/** A move before has asked it to leave: it stands still. */
TEST(MoveTransactionTest, WaitsForNobodyIfItHasLeftAlready)
{
    for (const std::size_t steps : {1, 3}) { /* before it would be ready, and then */
        world w(kWaits);
        go(w, steps);
        w.move.source_said(said("detached"), w.now);
        go(w, 3, steps);
        EXPECT_EQ(w.move.now(), phase::LEAVING);
        EXPECT_EQ(w.source_asked.back(), "leave");
    }
}

TEST(MoveTransactionTest, StaysIfTheMoveFailsWhileItWaits)
{
    const std::vector<std::function<void(world &)>> fails = {
        [](world &w) { w.move.source_said(failed(), w.now); },
        [](world &w) { w.move.target_said(failed(), w.now); },
        [](world &w) { w.move.target_lost("a reason", w.now); },
    };
    for (const bool finishing : {false, true}) {
        for (const auto &one : fails) {
            world w(kWaits);
            prepare(w, kMuch, 2 * kMuch);
            w.move.source_said(said("ready"), w.now);
            if (finishing) {
                w.move.go(w.now);
                w.move.source_said(kCopied, w.now);
            }
            one(w);
            EXPECT_EQ(w.source_asked.back(), "stay");
            EXPECT_TRUE(w.asked(w.target_asked, "end"));
            EXPECT_EQ(w.tokens(), 0);
            EXPECT_FALSE(w.result.at("ok"));
            w.move.go(w.now); /* which comes too late */
            EXPECT_EQ(w.source_asked.back(), "stay");
        }
    }
}

/* ---- what else there is to it ---- */

TEST(MoveTransactionTest, WaitsForBothSentAndRestored)
{
    world w;
    go(w, kDetached);
    w.move.target_said(said("restored"), w.now);
    EXPECT_TRUE(w.records.empty());
    w.move.source_said(said("sent"), w.now);
    EXPECT_TRUE(w.move.is_committed());
}

/** What fails after each number of steps. */
void check_failure(const std::function<void(world &)> &fail, std::size_t steps)
{
    SCOPED_TRACE(steps);
    world w;
    go(w, steps);
    fail(w);
    if (steps < kDetached) {
        EXPECT_EQ(w.tokens(), 0);
        EXPECT_TRUE(w.records.empty());
        EXPECT_EQ(w.move.now(), phase::DONE);
        EXPECT_EQ(w.move.incarnation(), 4u);
    } else {
        EXPECT_EQ(w.tokens(), 1);
        EXPECT_EQ(w.records, (std::vector<std::pair<std::uint64_t, bool>>{{5, false}}));
        EXPECT_EQ(w.move.now(), phase::RETURNING);
        /* The copy that is late is not listened to. */
        w.move.target_said(said("restored"), w.now);
        w.move.source_said(said("sent"), w.now);
        EXPECT_EQ(w.tokens(), 1);
        w.move.source_said(said("bound"), w.now);
        EXPECT_EQ(w.move.now(), phase::DONE);
        EXPECT_EQ(w.move.incarnation(), 5u);
    }
    EXPECT_FALSE(w.handed_over);
    EXPECT_FALSE(w.result.at("ok"));
    EXPECT_NE(w.result.at("why").get<std::string>().find("a reason"), std::string::npos);
    EXPECT_TRUE(w.asked(w.target_asked, "end"));
}

TEST(MoveTransactionTest, GoesOnWhereItWasUntilTheRecord)
{
    for (std::size_t steps = 1; steps < kCommitted; steps++) {
        check_failure([](world &w) { w.move.source_said(failed(), w.now); }, steps);
        check_failure([](world &w) { w.move.target_said(failed(), w.now); }, steps);
        check_failure([](world &w) { w.move.target_lost("a reason", w.now); }, steps);
    }
}

TEST(MoveTransactionTest, GivesUpWhatDoesNotAnswer)
{
    for (std::size_t steps = 1; steps < kCommitted; steps++) {
        if (steps == kDetached) /* an image takes as long as it does */
            continue;
        world w;
        go(w, steps);
        w.move.tick(w.now + 101s);
        EXPECT_NE(w.move.now(), phase::GOING) << steps;
        EXPECT_EQ(w.tokens(), steps < kDetached ? 0 : 1) << steps;
    }
}

TEST(MoveTransactionTest, RefusesWhatCannotMove)
{
    world w;
    w.move.begin();
    nlohmann::json examined = kExamined;
    examined["refused"] = {"it has a child", "it has a lock"};
    w.move.source_said(examined, w.now);
    EXPECT_EQ(w.result.at("why"), "it has a child; it has a lock");
    EXPECT_EQ(w.source_asked, (std::vector<std::string>{"examine"}));
}

TEST(MoveTransactionTest, SaysIfAnotherRankWasInTheWay)
{
    for (const bool again : {true, false}) {
        world w;
        w.move.begin();
        w.move.source_said(kExamined, w.now);
        w.move.prepared(kImage, w.now);
        nlohmann::json refusal = failed();
        refusal["again"] = again;
        w.move.source_said(refusal, w.now);
        EXPECT_EQ(w.result.at("ok"), false);
        EXPECT_EQ(w.result.at("again"), again);
        EXPECT_FALSE(w.result.contains("other_host"));
    }
}

/** Another host may have room now, and this one when they are there. */
TEST(MoveTransactionTest, SaysIfTheOtherHostHasPromisedItsMemoryToOthers)
{
    for (const bool again : {true, false}) {
        world w;
        w.move.begin();
        w.move.source_said(kExamined, w.now);
        w.move.prepared({{"refused", {"it has no room"}}, {"again", again}}, w.now);
        EXPECT_EQ(w.result.at("ok"), false);
        EXPECT_EQ(w.result.at("again"), again);
        EXPECT_EQ(w.result.at("other_host"), true);
    }
}

TEST(MoveTransactionTest, SaysIfTheOtherHostWasInTheWay)
{
    const std::vector<std::function<void(world &)>> fails = {
        [](world &w) {
            w.move.prepared(kImage, w.now);
            nlohmann::json silent = failed();
            silent["other_host"] = true;
            w.move.source_said(silent, w.now);
        },
        [](world &w) {
            w.move.prepared({{"refused", {"it has no such file"}}}, w.now);
        },
        [](world &w) { w.move.tick(w.now + 11s); },
        [](world &w) {
            w.move.prepared(kImage, w.now);
            w.move.target_said(failed(), w.now);
        },
        [](world &w) {
            w.move.prepared(kImage, w.now);
            w.move.target_lost("it gives no sign", w.now);
        },
    };
    for (const auto &one : fails) {
        world w;
        w.move.begin();
        w.move.source_said(kExamined, w.now);
        one(w);
        EXPECT_EQ(w.result.at("ok"), false);
        EXPECT_EQ(w.result.at("other_host"), true);
    }
}

TEST(MoveTransactionTest, GivesTheTokenBackToADetachedRankThatCannotMove)
{
    world w;
    go(w, kDetached - 1);
    w.move.source_said({{"said", "detached"}, {"refused", {"it has a socket"}}}, w.now);
    EXPECT_TRUE(w.asked(w.source_asked, "thaw"));
    EXPECT_FALSE(w.asked(w.source_asked, "send"));
}

/** A rank that was asked before, and has left since the move was given up, is not forgotten. */
TEST(MoveTransactionTest, GivesTheTokenToARankThatWasDetachedBefore)
{
    world w;
    w.move.begin();
    w.move.source_said(said("detached"), w.now);
    w.move.source_said(failed(), w.now);
    EXPECT_TRUE(w.asked(w.source_asked, "thaw"));
}

TEST(MoveTransactionTest, GivesNoTokenToTheTargetWithoutARecord)
{
    world w;
    go(w, kSent);
    w.record_fails = true;
    w.move.target_said(said("restored"), w.now);
    EXPECT_FALSE(w.asked(w.target_asked, "go"));
    EXPECT_FALSE(w.handed_over);
    /* This process decides, and lives: the other copy will never have one. */
    EXPECT_TRUE(w.asked(w.source_asked, "thaw"));
}

TEST(MoveTransactionTest, LetsTheTargetAloneLiveAfterTheRecord)
{
    for (int which = 0; which < 3; which++) {
        world w;
        go(w, kCommitted);
        if (which == 0)
            w.move.target_lost("a reason", w.now);
        else if (which == 1)
            w.move.target_said(failed(), w.now);
        else
            w.move.source_said(failed(), w.now);
        EXPECT_EQ(w.tokens(), 1);
        EXPECT_FALSE(w.asked(w.source_asked, "thaw"));
        if (which < 2) {
            EXPECT_FALSE(w.result.at("ok"));
        } else {
            w.move.target_said(said("bound"), w.now);
            EXPECT_TRUE(w.result.at("ok"));
        }
    }
}

/** Its image is whole: the move is a rescue. */
TEST(MoveTransactionTest, GoesOnWithoutASourceThatHasSent)
{
    world w;
    go(w, kSent);
    EXPECT_FALSE(w.move.source_lost("a reason", w.now));
    w.move.target_said(said("restored"), w.now);
    w.move.target_said(said("bound"), w.now);
    EXPECT_TRUE(w.result.at("ok"));
    for (std::size_t steps = 1; steps < kSent; steps++) {
        world other;
        go(other, steps);
        EXPECT_TRUE(other.move.source_lost("a reason", other.now)) << steps;
        EXPECT_EQ(other.tokens(), 0) << steps;
        EXPECT_FALSE(other.result.at("ok")) << steps;
    }
}

} // namespace
} // namespace zc::holder
