/* SPDX-License-Identifier: BSD-3-Clause */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "clock.h"
#include "departure.h"
#include "error.h"
#include "successor.h"
#include "two_sides.h"

namespace zc::migrate {
namespace {

using side = two_sides::side;
using message = two_sides::message;
using words = std::vector<message>;

/** A rank's data, registered. */
struct state {
    explicit state(std::size_t cells) : plate(cells), step(1)
    {
        data.add("plate", plate.data(), plate.size(), element::f64);
        data.add("step", step.data(), step.size(), element::i64);
    }
    std::vector<double> plate;
    std::vector<std::int64_t> step;
    registry data;
};

/** A leaver hands its data over to its successor, as job and move_transaction have them do. */
class handover {
  public:
    explicit handover(std::size_t cells = 100, bool whole = false)
        : before(cells), after(cells), is_whole(whole)
    {
        std::iota(before.plate.begin(), before.plate.end(), 0.5);
        before.step[0] = 17;
        kept_ = before.plate;
        chosen.timeout_s = 5;
    }

    void run()
    {
        sides.run([this] { leave(); }, [this] { succeed(); });
    }
    /** The successor's is that too, as far as it has asked for it. */
    bool is_complete() const
    {
        return after.plate == before.plate &&
               (!after.data.find("step") || after.step == before.step);
    }
    /** The leaver's data is what it was. */
    bool is_kept() const { return before.plate == kept_ && before.step[0] == 17; }

    /** What must hold whatever is lost. */
    void check() const
    {
        EXPECT_FALSE(sides.hung());
        EXPECT_TRUE(is_kept());
        EXPECT_TRUE(!acknowledged || is_complete());
        EXPECT_TRUE(!became_rank || said_go) << "two ranks";
        EXPECT_NE(said_go, !why.empty()) << "the leaver neither goes nor knows why not";
        if (said_go)
            return;
        const auto names = [&](const char *text) { return why.find(text) != std::string::npos; };
        EXPECT_TRUE(names("successor") || names("predecessor") || names("'plate'") ||
                    names("'step'") || names("nothing saved as") || names("killed"))
            << "does not name the cause: " << why;
    }

    state before, after;
    const bool is_whole; /* the data goes as one image */
    settings chosen;
    two_sides sides;
    bool said_go = false, acknowledged = false, became_rank = false;
    std::string why; /* the move is refused */

  private:
    void leave()
    {
        greeting hello;
        hello.moved = true;
        hello.rank = 1;
        hello.leavers = {1};
        hello.hosts = {"here", "there"};
        hello.job = "job";
        std::unique_ptr<departure> mine;
        try {
            mine = std::make_unique<departure>(
                chosen,
                std::make_unique<lifeline>(sides.end_of(side::leaver), false, chosen.timeout_s),
                hello, 0);
            mine->await();
            mine->proceed();
            std::unique_ptr<state_image> image;
            if (is_whole)
                image = std::make_unique<state_image>(before.data, header_);
            mine->serve(before.data, header_, nullptr, image.get());
            mine->commit();
        } catch (const std::exception &problem) {
            why = problem.what();
            if (mine)
                mine->abandon();
            return;
        }
        said_go = true; /* whether it arrives or not */
        mine->go();
        mine->line().disconnect();
    }

    void succeed()
    {
        auto line =
            std::make_unique<lifeline>(sides.end_of(side::successor), true, chosen.timeout_s);
        greeting::from_json(line->receive().text);
        line->send(word::here);
        if (line->receive(kNoLimit).what != word::proceed) {
            line->send_until_taken(word::left);
            return;
        }
        from_predecessor from(std::move(line), header_, chosen);
        try {
            for (const auto &[name, each] : after.data.all())
                from.restore(each);
        } catch (const std::exception &problem) {
            from.leave(problem.what());
            throw;
        }
        acknowledged = true;
        from.line().send(word::ready, R"({"restore_ms":1.5})");
        if (from.line().receive(kNoLimit).what != word::go) {
            from.leave("");
            return;
        }
        became_rank = true;
    }

    const image_header header_{1, 4, 100, 7};
    std::vector<double> kept_;
};

constexpr side kSides[] = {side::leaver, side::successor};
constexpr std::size_t kLarge = 300'000; /* three segments */

/** What is sent if all goes well, by each. */
std::array<words, 2> conversation(std::size_t cells = 100, bool whole = false)
{
    handover one(cells, whole);
    one.run();
    EXPECT_TRUE(one.became_rank);
    return {one.sides.sent(side::leaver), one.sides.sent(side::successor)};
}

/** A network that does @damage to the @at-th message of @whose. */
template <typename Damage>
two_sides::network damaging(side whose, std::size_t at, Damage damage)
{
    return [=](side from, std::size_t number, message sent) {
        return from == whose && number == at ? damage(std::move(sent)) : words{std::move(sent)};
    };
}

std::string name_of(side whose, std::size_t at)
{
    return (whose == side::leaver ? "the leaver's" : "the successor's") + std::string(" message ") +
           std::to_string(at);
}

TEST(Handover, GivesTheSuccessorAllThatTheLeaverHas)
{
    for (std::size_t cells : {std::size_t{1}, std::size_t{100}, kLarge, 12 * kLarge / 3}) {
        handover one(cells);
        one.run();
        one.check();
        EXPECT_TRUE(one.said_go && one.became_rank && one.is_complete()) << cells;
    }
}

TEST(Handover, IsRefusedWithTheCauseIfAnyMessageIsLost)
{
    const auto good = conversation(kLarge);
    for (side whose : kSides)
        for (std::size_t at = 0; at < good[whose].size(); at++) {
            SCOPED_TRACE(name_of(whose, at));
            handover one(kLarge);
            one.sides.through(damaging(whose, at, [](message) { return words{}; }));
            one.run();
            one.check();
            EXPECT_FALSE(one.became_rank);
            const bool is_go = good[whose][at].kind == static_cast<int>(word::go);
            EXPECT_EQ(one.said_go, is_go);
            if (is_go) {
                EXPECT_NE(one.sides.problem(side::successor).find("the predecessor is gone"),
                          std::string::npos)
                    << one.sides.problem(side::successor);
            }
        }
}

TEST(Handover, NeverTakesWhatWasCutForWhole)
{
    const auto good = conversation();
    for (side whose : kSides)
        for (std::size_t at = 0; at < good[whose].size(); at++) {
            const std::size_t length = good[whose][at].bytes.size();
            /* At every byte; of segments, which have thousands of them, at some. */
            const std::size_t stride = length > 1000 ? 61 : 1;
            for (std::size_t left = 0; left < length; left += stride) {
                SCOPED_TRACE(name_of(whose, at) + " cut to " + std::to_string(left));
                handover one;
                one.sides.through(damaging(whose, at, [=](message sent) {
                    sent.bytes.resize(left);
                    return words{std::move(sent)};
                }));
                one.run();
                one.check();
                EXPECT_FALSE(one.said_go);
            }
        }
}

TEST(Handover, NeverTakesASegmentForWholeThatIsTooLong)
{
    const auto good = conversation();
    for (std::size_t at = 0; at < good[side::leaver].size(); at++) {
        if (good[side::leaver][at].kind != static_cast<int>(word::segment))
            continue;
        handover one;
        one.sides.through(damaging(side::leaver, at, [](message sent) {
            sent.bytes.resize(sent.bytes.size() + 8);
            return words{std::move(sent)};
        }));
        one.run();
        one.check();
        EXPECT_FALSE(one.said_go);
    }
}

TEST(Handover, FindsEachBitOfASegmentThatIsWrong)
{
    const auto good = conversation();
    for (std::size_t at = 0; at < good[side::leaver].size(); at++) {
        const auto &[kind, bytes] = good[side::leaver][at];
        if (kind != static_cast<int>(word::segment))
            continue;
        for (std::size_t place = 0; place < bytes.size(); place += 61) {
            handover one;
            one.sides.through(damaging(side::leaver, at, [=](message sent) {
                sent.bytes[place] ^= std::byte{static_cast<unsigned char>(1u << (place % 8))};
                return words{std::move(sent)};
            }));
            one.run();
            one.check();
            EXPECT_FALSE(one.said_go);
            EXPECT_NE(one.why.find("its checksum differs"), std::string::npos) << one.why;
        }
    }
}

std::size_t segments_in(const words &sent)
{
    return static_cast<std::size_t>(std::ranges::count_if(
        sent, [](const message &one) { return one.kind == static_cast<int>(word::segment); }));
}

TEST(Handover, SendsOneImageWholeAndOnce)
{
    for (std::size_t cells : {std::size_t{1}, std::size_t{100}, kLarge, 8 * kLarge}) {
        handover one(cells, true);
        one.run();
        one.check();
        EXPECT_TRUE(one.said_go && one.became_rank && one.is_complete()) << cells;
    }
    EXPECT_EQ(segments_in(conversation(kLarge, true)[side::leaver]), 1u);
    EXPECT_GT(segments_in(conversation(kLarge)[side::leaver]), 3u);
    EXPECT_EQ(segments_in(conversation(8 * kLarge, true)[side::leaver]), 2u); /* parts of 16 MiB */
}

TEST(Handover, OfOneImageIsRefusedWithTheCauseIfAnyMessageIsLost)
{
    const auto good = conversation(kLarge, true);
    for (side whose : kSides)
        for (std::size_t at = 0; at < good[whose].size(); at++) {
            SCOPED_TRACE(name_of(whose, at));
            handover one(kLarge, true);
            one.sides.through(damaging(whose, at, [](message) { return words{}; }));
            one.run();
            one.check();
            EXPECT_FALSE(one.became_rank);
        }
}

TEST(Handover, FindsWhatIsWrongInOneImage)
{
    const auto good = conversation(100, true);
    for (std::size_t at = 0; at < good[side::leaver].size(); at++) {
        const auto &[kind, bytes] = good[side::leaver][at];
        if (kind != static_cast<int>(word::segment))
            continue;
        for (std::size_t place = 0; place < bytes.size(); place += 61) {
            for (const bool is_cut : {false, true}) {
                handover one(100, true);
                one.sides.through(damaging(side::leaver, at, [=](message sent) {
                    if (is_cut)
                        sent.bytes.resize(place);
                    else
                        sent.bytes[place] ^=
                            std::byte{static_cast<unsigned char>(1u << (place % 8))};
                    return words{std::move(sent)};
                }));
                one.run();
                one.check();
                EXPECT_FALSE(one.said_go);
                EXPECT_NE(one.why.find(is_cut ? "cut short" : "its checksum differs"),
                          std::string::npos)
                    << one.why;
            }
        }
    }
}

TEST(Handover, OfOneImageLeavesTheLeaverTheRankIfTheSuccessorIsGoneAtAnyStep)
{
    handover good(kLarge, true);
    good.run();
    for (std::size_t at = 0; at < good.sides.steps(side::successor); at++) {
        SCOPED_TRACE(at);
        handover one(kLarge, true);
        one.sides.kill(side::successor, at);
        one.run();
        one.check();
    }
}

TEST(Handover, SurvivesWordsWithWrongBytes)
{
    const auto good = conversation();
    for (side whose : kSides)
        for (std::size_t at = 0; at < good[whose].size(); at++)
            for (std::size_t place = 0; place < good[whose][at].bytes.size(); place++) {
                if (good[whose][at].kind == static_cast<int>(word::segment))
                    break;
                SCOPED_TRACE(name_of(whose, at) + ", byte " + std::to_string(place));
                handover one;
                one.sides.through(damaging(whose, at, [=](message sent) {
                    sent.bytes[place] ^= std::byte{0x15};
                    return words{std::move(sent)};
                }));
                one.run();
                one.check();
            }
}

TEST(Handover, SurvivesMessagesInAnotherOrder)
{
    const auto good = conversation(kLarge);
    for (side whose : kSides)
        for (std::size_t at = 0; at < good[whose].size(); at++) {
            SCOPED_TRACE(name_of(whose, at));
            handover one(kLarge);
            auto held = std::make_shared<words>();
            one.sides.through([=](side from, std::size_t number, message sent) {
                words arrive;
                if (from == whose && number == at) {
                    held->push_back(std::move(sent));
                } else {
                    arrive.push_back(std::move(sent));
                    if (from == whose && number == at + 1)
                        arrive.push_back(std::move(held->front()));
                }
                return arrive;
            });
            one.run();
            one.check();
        }
}

TEST(Handover, SurvivesMessagesThatComeTwice)
{
    const auto good = conversation(kLarge);
    for (side whose : kSides)
        for (std::size_t at = 0; at < good[whose].size(); at++) {
            SCOPED_TRACE(name_of(whose, at));
            handover one(kLarge);
            one.sides.through(damaging(whose, at, [](message sent) {
                return words{sent, std::move(sent)};
            }));
            one.run();
            one.check();
        }
}

TEST(Handover, LeavesTheLeaverTheRankIfTheSuccessorIsGoneAtAnyStep)
{
    handover good(kLarge);
    good.run();
    for (std::size_t at = 0; at < good.sides.steps(side::successor); at++) {
        SCOPED_TRACE(at);
        handover one(kLarge);
        one.sides.kill(side::successor, at);
        one.run();
        one.check();
        EXPECT_EQ(one.sides.problem(side::successor), "killed");
        EXPECT_FALSE(one.became_rank);
        EXPECT_EQ(one.said_go, one.acknowledged && one.why.empty());
    }
}

TEST(Handover, EndsTheSuccessorIfTheLeaverIsGoneAtAnyStep)
{
    handover good(kLarge);
    good.run();
    for (std::size_t at = 0; at < good.sides.steps(side::leaver); at++) {
        SCOPED_TRACE(at);
        handover one(kLarge);
        one.sides.kill(side::leaver, at);
        one.run();
        EXPECT_FALSE(one.sides.hung());
        EXPECT_FALSE(one.became_rank);
        EXPECT_TRUE(one.is_kept());
        const std::string &why = one.sides.problem(side::successor);
        EXPECT_TRUE(why.find("the predecessor") != std::string::npos) << why;
    }
}

TEST(Handover, IsRefusedIfTheSuccessorRegistersSomethingElse)
{
    const auto refused_with = [](const std::string &cause, auto change) {
        handover one;
        change(one.after.data);
        one.run();
        one.check();
        EXPECT_FALSE(one.said_go);
        EXPECT_NE(one.why.find(cause), std::string::npos) << one.why;
    };
    std::vector<double> other(101);
    refused_with("'plate' has 101 elements in the successor, 100 before",
                 [&](registry &data) { data.replace("plate", other.data(), 101); });
    refused_with("type of 'plate' is int64 in the successor, float64 before", [&](registry &data) {
        data.remove("plate");
        data.add("plate", other.data(), 100, element::i64);
    });
    refused_with("nothing saved as 'other'",
                 [&](registry &data) { data.add("other", other.data(), 3, element::f64); });
    refused_with("the successor has not registered 'step'",
                 [&](registry &data) { data.remove("step"); });
}

TEST(Lifeline, SaysHowLongTheOtherHasBeenSilent)
{
    two_sides sides;
    sides.run(
        [&] {
            lifeline line(sides.end_of(side::leaver), false, 7);
            line.receive();
        },
        [&] {
            lifeline line(sides.end_of(side::successor), true, 100);
            line.receive();
        });
    EXPECT_EQ(sides.problem(side::leaver), "the successor has been silent for 7 s");
    EXPECT_EQ(sides.problem(side::successor), "the predecessor is gone: sending failed");
}

/** A send to a process that has ended @after_s before that is told. */
void expect_end_told(const std::string &how, double after_s, const std::string &problem)
{
    two_sides sides;
    sides.tell_end(how, after_s);
    sides.run(
        [&] {
            lifeline line(sides.end_of(side::leaver), false, 7);
            line.receive();
            line.send(word::proceed);
        },
        [&] {
            lifeline line(sides.end_of(side::successor), true, 100);
            line.send(word::here);
        });
    EXPECT_EQ(sides.problem(side::leaver), problem);
}

TEST(Lifeline, SaysHowTheOtherHasEndedThoughTheNetworkSaysFirstThatItHas)
{
    expect_end_told("was killed", 0, "the successor was killed");
    expect_end_told("was killed", 1, "the successor was killed");
    expect_end_told("", 0, "the successor is gone: a transfer failed");
    expect_end_told("was killed", 100, "the successor is gone: a transfer failed");
}

TEST(Lifeline, WaitsWithoutLimitForAnotherThatIsThere)
{
    two_sides sides;
    word heard{};
    sides.run(
        [&] {
            lifeline line(sides.end_of(side::leaver), false, 50);
            EXPECT_THROW(line.receive(), error); /* 50 s later */
            line.send(word::go);
        },
        [&] {
            lifeline line(sides.end_of(side::successor), true, 5);
            heard = line.receive(kNoLimit).what;
        });
    EXPECT_EQ(heard, word::go);
}

} // namespace
} // namespace zc::migrate
