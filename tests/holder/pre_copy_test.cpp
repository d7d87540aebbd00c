/* SPDX-License-Identifier: BSD-3-Clause */
#include "pre_copy.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "error.h"
#include "forked.h"

namespace zc::holder {
namespace {

constexpr std::uint64_t kNoEnd = std::uint64_t{1} << 40;
constexpr std::size_t kManyPages =
    3 * pre_copy::kLittle / kPage; /* pages, enough for several rounds */

/** What the other host has in its store after a copy. */
struct copied {
    explicit copied(pid_t pid, std::uint64_t most = kNoEnd, bool waits = false,
                    void (*first)(pre_copy &) = nullptr, bool tells = true)
        : copy(pid, most, waits, tells)
    {
        if (first)
            first(copy);
        push_until([&] { return waits && !first && copy.is_ready(); });
    }
    /** Until it is done, or @enough at the end of a round. */
    void push_until(const std::function<bool()> &enough)
    {
        outgoing out(stream_id::image, 16 * outgoing::kLongest);
        std::string bytes;
        for (bool done = false; !done && !(out.is_done() && !copy.can_push(out) && enough());) {
            done = copy.push(out);
            EXPECT_TRUE(!done || out.is_done()) << "what was pushed is under way";
            while (const auto next = out.next()) {
                bytes += next->bytes;
                out.acknowledge(next->offset + next->bytes.size());
            }
        }
        for (std::size_t at = 0; at < bytes.size();) {
            const std::size_t end = bytes.find('\n', at) + 1;
            const std::size_t runs = nlohmann::json::parse(bytes.substr(at, end - at)).at("memory");
            const std::size_t size = runs * page_runs::kBytes;
            at = end + size;
            for (stored_pages run : page_runs::of(bytes.substr(end, size))) {
                if (run.from == page_runs::kFollows) {
                    run.from = store.size();
                    store += bytes.substr(at, run.bytes);
                    at += run.bytes;
                }
                told.set(run);
            }
        }
    }
    /** Where it says that the page is, it is. */
    bool has(const std::string &page) const
    {
        const auto at = page_finder(copy.there()).find(page);
        return at && store.compare(*at, kPage, page) == 0;
    }
    /** What it has been told of the page at @address. */
    std::string page_at(const void *address) const
    {
        const auto at = told.find(reinterpret_cast<std::uint64_t>(address));
        return at ? store.substr(*at, kPage) : "not told";
    }
    pre_copy copy;
    std::string store;
    page_places told;
};

constexpr std::chrono::milliseconds kPastALook{300};

/** Quicker than write_pages(). */
void mark_pages(char *at, std::uint64_t number, std::size_t count)
{
    for (std::size_t i = 0; i < count; i++, number++)
        std::memcpy(at + i * kPage, &number, sizeof number);
}

TEST(PreCopyTest, SendsAllMemoryOnce)
{
    char *at = pages_of_memory(kManyPages);
    forked other([&] { write_pages(at, 0, kManyPages); });
    const copied all(other.pid());
    for (std::size_t i = 0; i < kManyPages; i++) {
        ASSERT_TRUE(all.has(page_of(i))) << i;
        ASSERT_EQ(all.page_at(at + i * kPage), page_of(i)) << i;
    }
    EXPECT_EQ(all.copy.bytes(), all.store.size());
    EXPECT_EQ(all.copy.rounds(), 2u) << "in the second there is nothing to send";
    EXPECT_EQ(all.copy.there().size(), all.store.size() / kPage);
}

TEST(PreCopyTest, SendsEqualPagesOnce)
{
    char *at = pages_of_memory(kManyPages);
    forked other([&] {
        for (std::size_t i = 0; i < kManyPages; i++)
            page_of(i % 2).copy(at + i * kPage, kPage);
    });
    const copied all(other.pid());
    for (std::size_t i = 0; i < kManyPages; i++)
        ASSERT_EQ(all.page_at(at + i * kPage), page_of(i % 2));
    for (const std::string &page : {page_of(0), page_of(1)}) {
        std::size_t found = 0;
        for (std::size_t i = 0; i < all.store.size(); i += kPage)
            found += all.store.compare(i, kPage, page) == 0;
        EXPECT_EQ(found, 1u);
        EXPECT_TRUE(all.has(page));
    }
}

TEST(PreCopyTest, EndsAlthoughTheMemoryChangesAsFastAsItIsSent)
{
    char *at = pages_of_memory(kManyPages);
    std::uint64_t number = 0;
    forked other([&] { write_pages(at, 0, kManyPages); },
                 [&] {
                     write_pages(at, number, kManyPages);
                     number += kManyPages;
                 });
    const copied some(other.pid());
    EXPECT_NE(some.copy.why_ended(), pre_copy::ended::LITTLE_LEFT);
    EXPECT_LE(some.copy.rounds(), pre_copy::kMostRounds);
}

TEST(PreCopyTest, SendsNoMoreThanTheOtherHostHasRoomFor)
{
    char *at = pages_of_memory(kManyPages);
    forked other([&] { write_pages(at, 0, kManyPages); });
    const std::uint64_t most = 5 << 20;
    const copied some(other.pid(), most);
    EXPECT_GT(some.store.size(), most - 2 * rank_memory::kAtOnce);
    EXPECT_LE(some.store.size(), most);
    EXPECT_EQ(some.copy.rounds(), 1u);
}

TEST(PreCopyTest, EndsWithItsProcess)
{
    forked other([] {});
    const pid_t pid = other.pid();
    other.end();
    const copied nothing(pid);
    EXPECT_EQ(nothing.store.size(), 0u);
}

TEST(PreCopyTest, SendsWhatIsWrittenWhileItWaits)
{
    char *at = pages_of_memory(kManyPages);
    stepped &steps = stepped::make();
    forked other([&] { write_pages(at, 0, kManyPages); },
                 [&] { steps.serve([&](int step) { write_pages(at, step * kManyPages, 100); }); });
    copied all(other.pid(), kNoEnd, true);
    EXPECT_TRUE(all.copy.is_ready());
    EXPECT_EQ(all.copy.rounds(), 2u);
    for (int step = 1; step < 3; step++) {
        const std::uint64_t before = all.copy.bytes();
        steps.ask(step);
        all.push_until([&] { return all.copy.bytes() >= before + 100 * kPage; });
        EXPECT_TRUE(all.has(page_of(step * kManyPages + 99)));
        EXPECT_EQ(all.page_at(at + 99 * kPage), page_of(step * kManyPages + 99));
    }
    EXPECT_GE(all.copy.rounds(), 4u);
    EXPECT_EQ(all.copy.bytes(), all.store.size());
}

TEST(PreCopyTest, SendsOnceMoreWhatWasWrittenWhileItWaited)
{
    char *at = pages_of_memory(kManyPages);
    stepped &steps = stepped::make();
    forked other([&] { write_pages(at, 0, kManyPages); },
                 [&] { steps.serve([&](int step) { write_pages(at, step * kManyPages, 100); }); });
    copied all(other.pid(), kNoEnd, true);
    steps.ask(1);
    all.copy.finish();
    all.push_until([] { return false; });
    EXPECT_TRUE(all.has(page_of(kManyPages + 99)));
    EXPECT_EQ(all.copy.rounds(), 3u);
}

TEST(PreCopyTest, WaitsWithAStoreThatIsFull)
{
    char *at = pages_of_memory(kManyPages);
    forked other([&] { write_pages(at, 0, kManyPages); });
    copied some(other.pid(), 5 << 20, true);
    EXPECT_TRUE(some.copy.is_ready());
    some.copy.finish();
    some.push_until([] { return false; });
    EXPECT_EQ(some.copy.rounds(), 1u);
}

/** It has not sent all yet. */
TEST(PreCopyTest, EndsAsEverIfItNeedNotWaitBeforeItIsReady)
{
    char *at = pages_of_memory(kManyPages);
    forked other([&] { write_pages(at, 0, kManyPages); });
    copied all(other.pid(), kNoEnd, true, [](pre_copy &copy) { copy.finish(); });
    EXPECT_TRUE(all.has(page_of(kManyPages - 1)));
    EXPECT_EQ(all.copy.rounds(), 2u);
}

/** When the rank is about to stand still. */
TEST(PreCopyTest, CatchesUpWithWhatWasWrittenSinceItWasDone)
{
    constexpr int kStep = 1000; /* whose pages no other test has */
    struct shared {
        stepped steps;
        std::atomic<int> served;
    };
    shared &both = *new (pages_of_memory(1, MAP_SHARED)) shared;
    char *at = pages_of_memory(kManyPages);
    forked other(
        [&] {
            write_pages(at, 0, kManyPages);
            both.served = own_userfault();
        },
        [&] { both.steps.serve([&](int step) { write_pages(at, step * kManyPages, 100); }); });
    copied tracked(other.pid(), kNoEnd, true);
    try {
        tracked.copy.track(other.take(both.served));
    } catch (const error &cannot) {
        GTEST_SKIP() << cannot.what();
    }
    tracked.copy.finish();
    tracked.push_until([] { return false; });
    const std::uint64_t before = tracked.copy.bytes();
    both.steps.ask(kStep);
    tracked.push_until([] { return false; });
    EXPECT_EQ(tracked.copy.bytes(), before) << "it is done";
    tracked.copy.catch_up();
    tracked.push_until([] { return false; });
    EXPECT_GE(tracked.copy.bytes(), before + 100 * kPage);
    EXPECT_LT(tracked.copy.bytes(), before + kManyPages / 2 * kPage)
        << "those, and what the process itself has written, but not all once more";
    for (std::size_t i = 0; i < kManyPages; i++)
        ASSERT_EQ(tracked.page_at(at + i * kPage), page_of(i < 100 ? kStep * kManyPages + i : i))
            << i;
    const auto begin = reinterpret_cast<std::uint64_t>(at);
    const auto changed =
        tracked.copy.sent().unchanged->changed({begin, begin + kManyPages * kPage});
    ASSERT_EQ(changed.size(), 1u) << "nothing is protected, so they are read once more";
    EXPECT_EQ(changed[0].begin, begin);
    EXPECT_EQ(changed[0].end, begin + 100 * kPage);
}

/** CRIU's files have the pages then. */
TEST(PreCopyTest, NeedNotTellWhichPageEachIs)
{
    char *at = pages_of_memory(kManyPages);
    forked other([&] {
        for (std::size_t i = 0; i < kManyPages; i++)
            page_of(i % 2).copy(at + i * kPage, kPage);
    });
    const copied all(other.pid(), kNoEnd, false, nullptr, false);
    EXPECT_TRUE(all.has(page_of(0)));
    EXPECT_TRUE(all.has(page_of(1)));
    EXPECT_EQ(all.told.bytes(), all.store.size()) << "where it lies of what is new";
    const auto begin = reinterpret_cast<std::uint64_t>(at);
    EXPECT_FALSE(all.told.has_any(begin + 2 * kPage, (kManyPages - 2) * kPage));
}

TEST(PreCopyTest, DoesNotCatchUpWhereTheKernelDoesNotTell)
{
    char *at = pages_of_memory(kManyPages);
    stepped &steps = stepped::make();
    forked other([&] { write_pages(at, 0, kManyPages); },
                 [&] { steps.serve([&](int step) { write_pages(at, step * kManyPages, 100); }); });
    copied all(other.pid());
    steps.ask(1);
    all.copy.catch_up();
    all.push_until([] { return false; });
    EXPECT_EQ(all.page_at(at), page_of(0));
}

/** And the image goes on from there. */
TEST(PreCopyTest, KnowsWhatTheOtherHostKnows)
{
    char *at = pages_of_memory(kManyPages);
    forked other([&] { write_pages(at, 0, kManyPages); });
    copied all(other.pid());
    const sent_ahead ahead = all.copy.sent();
    EXPECT_EQ(ahead.told.sum(), all.told.sum());
    EXPECT_EQ(ahead.told.bytes(), all.told.bytes());
    EXPECT_GE(ahead.told.bytes(), kManyPages * kPage);
    EXPECT_EQ(ahead.stored, all.store.size());
    EXPECT_EQ(ahead.there, &all.copy.there());
    EXPECT_EQ(ahead.unchanged, nullptr);
}

/** Its owner has other things to do. */
TEST(PreCopyTest, WaitsWhereThereIsNoRoom)
{
    char *at = pages_of_memory(kManyPages);
    forked other([&] { write_pages(at, 0, kManyPages); });
    pre_copy copy(other.pid(), kNoEnd);
    outgoing out(stream_id::image, 16 * outgoing::kLongest);
    for (int i = 0; i < 100; i++)
        EXPECT_FALSE(copy.push(out));
    EXPECT_LE(copy.bytes(), 16 * outgoing::kLongest);
}

/** In so many steps, between which so many of its pages are written, the first ones. */
struct copied_slowly {
    copied_slowly(std::size_t writes, std::optional<std::chrono::milliseconds> within)
        : other([this] { mark_pages(at, 1, kMost); },
                [this, writes] {
                    steps.serve(
                        [this, writes](int step) { mark_pages(at, 1 + step * kMost, writes); });
                }),
          copy(other.pid(), kNoEnd)
    {
        if (within)
            copy.end_by(std::chrono::steady_clock::now() + *within);
        for (int step = 1; !push_some();) {
            steps.ask(step++);
            std::this_thread::sleep_for(kPastALook);
        }
    }
    ~copied_slowly() { munmap(at, kMost * kPage); }
    copied_slowly(const copied_slowly &) = delete;
    copied_slowly &operator=(const copied_slowly &) = delete;
    /** Until it is done, or has sent so much more. */
    bool push_some()
    {
        constexpr std::uint64_t kPart = 26 << 20;
        for (const std::uint64_t begin = copy.bytes(); copy.bytes() < begin + kPart;) {
            if (copy.push(out))
                return true;
            while (const auto next = out.next())
                out.acknowledge(next->offset + next->bytes.size());
        }
        return false;
    }
    static constexpr std::size_t kMost = 96 << 8; /* pages */
    char *at = pages_of_memory(kMost);
    stepped &steps = stepped::make();
    outgoing out{stream_id::image, 16 * outgoing::kLongest};
    forked other;
    pre_copy copy;
};

/** So that what stands still is not sent twice first. */
TEST(PreCopyTest, EndsInTheFirstRoundIfItIsOutrun)
{
    const copied_slowly some(copied_slowly::kMost, {});
    EXPECT_EQ(some.copy.why_ended(), pre_copy::ended::OUTRUN);
    EXPECT_EQ(some.copy.rounds(), 1u);
    EXPECT_LT(some.copy.bytes(), copied_slowly::kMost * kPage * 3 / 4);
    const copied_slowly all(0, {});
    EXPECT_EQ(all.copy.why_ended(), pre_copy::ended::LITTLE_LEFT);
    EXPECT_GE(all.copy.bytes(), copied_slowly::kMost * kPage);
}

/** As much as is sent is written, but what is not sent yet is not. */
TEST(PreCopyTest, IsNotOutrunByWhatIsWrittenInOnePlace)
{
    constexpr std::size_t kFirst = copied_slowly::kMost / 3;
    const copied_slowly some(kFirst, {});
    EXPECT_NE(some.copy.why_ended(), pre_copy::ended::OUTRUN);
    EXPECT_GE(some.copy.bytes(), copied_slowly::kMost * kPage);
}

TEST(PreCopyTest, EndsInTimeForTheRest)
{
    const copied_slowly late(0, std::chrono::milliseconds(100));
    EXPECT_EQ(late.copy.why_ended(), pre_copy::ended::NO_TIME);
    EXPECT_EQ(late.copy.rounds(), 1u);
    EXPECT_LT(late.copy.bytes(), copied_slowly::kMost * kPage / 2);
    const copied_slowly early(0, std::chrono::hours(1));
    EXPECT_EQ(early.copy.why_ended(), pre_copy::ended::LITTLE_LEFT);
    EXPECT_GE(early.copy.bytes(), copied_slowly::kMost * kPage);
}

/** In which no more is taken than there is room for. */
TEST(PreCopyTest, DoesNotJudgeALinkByItsBeginning)
{
    constexpr std::size_t kMany = copied_slowly::kMost;
    char *at = pages_of_memory(kMany);
    forked other([&] { mark_pages(at, 1, kMany); });
    pre_copy copy(other.pid(), kNoEnd);
    outgoing out(stream_id::image, 2 * rank_memory::kAtOnce);
    copy.end_by(std::chrono::steady_clock::now() + std::chrono::seconds(60));
    while (copy.can_push(out))
        copy.push(out);
    EXPECT_LT(copy.bytes(), kMany * kPage / 16);
    std::this_thread::sleep_for(3 * kPastALook);
    while (!copy.push(out)) {
        while (const auto next = out.next())
            out.acknowledge(next->offset + next->bytes.size());
    }
    EXPECT_EQ(copy.why_ended(), pre_copy::ended::LITTLE_LEFT);
    munmap(at, kMany * kPage);
}

/** Pushed to the end of the first round, which is taken when nearly all has been written anew:
 * pages enough that what else a process has is little, also with a sanitizer. */
struct written_at_the_end {
    /** @room: for so many times its memory in the store. */
    written_at_the_end(unsigned room, bool waits)
        : other([this] { mark_pages(at, 1, kMany); },
                [this] {
                    steps.serve([this](int step) { mark_pages(at, 1 + step * kMany, kMany); });
                }),
          copy(other.pid(), room * anonymous_bytes(other.pid()), waits),
          out(stream_id::image, 2 * anonymous_bytes(other.pid()))
    {
        while (copy.can_push(out))
            copy.push(out);
        steps.ask(1);
        take();
    }
    ~written_at_the_end() { munmap(at, kMany * kPage); }
    written_at_the_end(const written_at_the_end &) = delete;
    written_at_the_end &operator=(const written_at_the_end &) = delete;
    void take()
    {
        while (const auto next = out.next())
            out.acknowledge(next->offset + next->bytes.size());
    }
    static constexpr std::size_t kMany = 160 << 8; /* pages */
    char *at = pages_of_memory(kMany);
    stepped &steps = stepped::make();
    forked other;
    pre_copy copy;
    outgoing out;
};

TEST(PreCopyTest, BeginsNoRoundThatWouldSendNoLess)
{
    written_at_the_end some(10, false);
    EXPECT_TRUE(some.copy.push(some.out));
    EXPECT_EQ(some.copy.why_ended(), pre_copy::ended::NO_LESS);
    EXPECT_EQ(some.copy.rounds(), 1u);
}

/** Others are waited for, and nothing is sent meanwhile, nor at the end. */
TEST(PreCopyTest, SendsNoMoreWhileItWaitsIfThereIsNoTime)
{
    char *at = pages_of_memory(kManyPages);
    stepped &steps = stepped::make();
    forked other([&] { write_pages(at, 0, kManyPages); },
                 [&] { steps.serve([&](int step) { write_pages(at, step * kManyPages, 100); }); });
    copied all(other.pid(), kNoEnd, true);
    const std::uint64_t before = all.copy.bytes();
    all.copy.end_by(std::chrono::steady_clock::now());
    steps.ask(1);
    all.copy.finish();
    all.push_until([] { return false; });
    EXPECT_EQ(all.copy.bytes(), before);

    pre_copy late(other.pid(), kNoEnd, true); /* from the beginning on */
    late.end_by(std::chrono::steady_clock::now());
    outgoing out(stream_id::image, 2 * kManyPages * kPage);
    const auto push_until = [&](const std::function<bool()> &enough) {
        while (!enough()) {
            EXPECT_FALSE(late.push(out)) << "it waits";
            while (const auto next = out.next())
                out.acknowledge(next->offset + next->bytes.size());
        }
    };
    push_until([&] { return late.is_ready(); });
    EXPECT_EQ(late.why_ended(), pre_copy::ended::NO_TIME);
    steps.ask(2);
    const std::uint64_t at_rest = late.bytes();
    const auto enough = std::chrono::steady_clock::now() + 3 * pre_copy::kFirstRest;
    push_until([&] { return std::chrono::steady_clock::now() > enough; });
    EXPECT_EQ(late.bytes(), at_rest);
}

/** However long it has waited, which says nothing of the link. */
TEST(PreCopyTest, TellsHowLongTheRestTakesWhileItWaits)
{
    written_at_the_end some(2, true); /* no room for two more rounds */
    pre_copy &copy = some.copy;
    EXPECT_FALSE(copy.push(some.out)) << "it waits";
    EXPECT_EQ(copy.why_ended(), pre_copy::ended::NO_LESS);
    const pre_copy::seconds before = copy.rest();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    EXPECT_LT(copy.rest() - before, pre_copy::seconds(0.5));
    copy.end_by(std::chrono::steady_clock::now() + std::chrono::hours(1));
    const std::uint64_t sent = copy.bytes();
    copy.finish(); /* there is time */
    while (!copy.push(some.out))
        some.take();
    EXPECT_GT(copy.bytes(), sent);
}

/** Which is sent as it comes: it has not been written since. */
TEST(PreCopyTest, IsNotOutrunByMemoryThatGrows)
{
    char *at = pages_of_memory(8 * kManyPages);
    stepped &steps = stepped::make();
    forked other([&] { mark_pages(at, 1, kManyPages); },
                 [&] {
                     steps.serve([&](int step) {
                         mark_pages(at + step * kManyPages * kPage, 1 + step * kManyPages,
                                    kManyPages);
                     });
                 });
    pre_copy copy(other.pid(), kNoEnd);
    outgoing out(stream_id::image, 16 * outgoing::kLongest);
    for (int step = 1; !copy.push(out);) {
        while (const auto next = out.next())
            out.acknowledge(next->offset + next->bytes.size());
        if (step < 8 && copy.bytes() > (2 * step - 1) * kManyPages / 2 * kPage) {
            steps.ask(step++);
            std::this_thread::sleep_for(kPastALook);
        }
    }
    EXPECT_NE(copy.why_ended(), pre_copy::ended::OUTRUN);
    EXPECT_GE(copy.bytes(), 8 * kManyPages * kPage);
    munmap(at, 8 * kManyPages * kPage);
}

} // namespace
} // namespace zc::holder
