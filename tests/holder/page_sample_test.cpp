/* SPDX-License-Identifier: BSD-3-Clause */
#include "page_sample.h"

#include <gtest/gtest.h>

#include "forked.h"
#include "rank_memory.h"

namespace zc::holder {
namespace {

constexpr std::size_t kSampled = 1 << 14; /* pages: of each 16 one is looked at */

/** Those of another process, and steps that it does. */
struct sampled {
    explicit sampled(const std::function<void(char *at, int step)> &does)
        : other([this] { write_pages(at, 0, kSampled); },
                [this, does] { steps.serve([this, does](int step) { does(at, step); }); }),
          sample(kSampled * kPage)
    {
        write_pages(at, 0, kSampled); /* the same, here */
        for (std::size_t i = 0; i < kSampled; i++)
            sample.note(address_of(i), {at + i * kPage, kPage});
    }
    ~sampled() { munmap(at, kSampled * kPage); } /* other tests have pages that no other has */
    sampled(const sampled &) = delete;
    sampled &operator=(const sampled &) = delete;
    std::uint64_t address_of(std::size_t i) const
    {
        return reinterpret_cast<std::uint64_t>(at) + i * kPage;
    }
    double changed() { return sample.changed(other.pid(), ~std::uint64_t{0}).below; }
    char *at = pages_of_memory(kSampled);
    stepped &steps = stepped::make();
    forked other;
    page_sample sample;
};

TEST(PageSampleTest, LooksAtSome)
{
    const sampled some([](char *, int) {});
    EXPECT_NEAR(static_cast<double>(some.sample.size()), kSampled / page_sample::kOneOf, 200);
}

TEST(PageSampleTest, FindsHowManyWereWritten)
{
    sampled some([](char *at, int step) { write_pages(at, step * kSampled, kSampled / 4 * step); });
    EXPECT_EQ(some.changed(), 0);
    for (int quarters = 1; quarters <= 3; quarters++) {
        some.steps.ask(quarters);
        EXPECT_NEAR(some.changed(), 0.25 * quarters, 0.1);
    }
    some.steps.ask(4);
    EXPECT_EQ(some.changed(), 1);
}

TEST(PageSampleTest, TellsApartWhatIsBelowAnAddress)
{
    sampled some([](char *at, int) { write_pages(at, kSampled, kSampled / 2); });
    some.steps.ask(1);
    const auto quarter = some.sample.changed(some.other.pid(), some.address_of(kSampled / 4));
    EXPECT_EQ(quarter.below, 1);
    EXPECT_NEAR(quarter.above, 1.0 / 3, 0.1);
    const auto all = some.sample.changed(some.other.pid(), some.address_of(0));
    EXPECT_EQ(all.below, 0) << "there are none";
    EXPECT_NEAR(all.above, 0.5, 0.1);
}

/** What is there, of what may be: nothing else comes to be there. */
TEST(PageSampleTest, NotesWhatIsThere)
{
    constexpr std::size_t kOther = 1 << 16;
    char *at = pages_of_memory(kSampled), *more = pages_of_memory(kOther);
    stepped &steps = stepped::make();
    const forked other([&] { write_pages(at, 0, kSampled); },
                       [&] { steps.serve([&](int) { write_pages(at, kSampled, kSampled); }); });
    const auto range = [](char *first, std::size_t pages) {
        const auto begin = reinterpret_cast<std::uint64_t>(first);
        return page_range{begin, begin + pages * kPage};
    };
    const std::uint64_t before = anonymous_bytes(other.pid());
    page_sample sample(kSampled * kPage);
    sample.note_all(other.pid(), {range(at, kSampled), range(more, kOther)});
    EXPECT_NEAR(static_cast<double>(sample.size()), kSampled / page_sample::kOneOf, 2);
    EXPECT_EQ(anonymous_bytes(other.pid()), before);
    EXPECT_EQ(sample.changed(other.pid(), 0).above, 0);
    steps.ask(1);
    EXPECT_EQ(sample.changed(other.pid(), 0).above, 1);
    page_sample none(kSampled * kPage);
    none.note_all(other.pid(), std::vector(10, range(more, kOther)));
    EXPECT_EQ(none.size(), 0u) << "it would take long";
    munmap(at, kSampled * kPage);
    munmap(more, kOther * kPage);
}

TEST(PageSampleTest, LooksAtNoMoreOfLargeMemory)
{
    page_sample sample(page_sample::kMost * page_sample::kOneOf * kPage * 8);
    const std::string page = page_of(0);
    for (std::uint64_t i = 0; i < 8 * page_sample::kOneOf * page_sample::kMost; i++)
        sample.note(i * kPage, page);
    EXPECT_NEAR(static_cast<double>(sample.size()), page_sample::kMost, 300);
}

TEST(PageSampleTest, ForgetsSomeIfThereIsMoreMemoryThanWasSaid)
{
    page_sample sample(page_sample::kMost * page_sample::kOneOf * kPage);
    const std::string page = page_of(0);
    std::size_t most = 0;
    for (std::uint64_t i = 0; i < 10 * page_sample::kOneOf * page_sample::kMost; i++) {
        sample.note(i * kPage, page);
        most = std::max(most, sample.size());
    }
    EXPECT_LE(most, 3 * page_sample::kMost + 1);
    EXPECT_NEAR(static_cast<double>(sample.size()), 10.0 / 9 * page_sample::kMost, 1000);
}

TEST(PageSampleTest, JudgesByWhatWasReadLast)
{
    sampled some([](char *at, int step) { write_pages(at, step * kSampled, kSampled); });
    some.steps.ask(1);
    EXPECT_EQ(some.changed(), 1);
    write_pages(some.at, kSampled, kSampled);
    for (std::size_t i = 0; i < kSampled; i++)
        some.sample.note(some.address_of(i), {some.at + i * kPage, kPage});
    EXPECT_EQ(some.changed(), 0);
}

TEST(PageSampleTest, WhatIsThereNoMoreDoesNotCount)
{
    sampled some([](char *at, int step) {
        if (step == 1) /* every other part, so that there are holes */
            for (std::size_t i = 0; i < kSampled; i += 128)
                munmap(at + i * kPage, 64 * kPage);
        else
            write_pages(at + 64 * kPage, kSampled, 64);
    });
    const std::size_t before = some.sample.size();
    some.steps.ask(1);
    EXPECT_EQ(some.changed(), 0);
    EXPECT_NEAR(static_cast<double>(some.sample.size()), static_cast<double>(before) / 2, 200);
    some.steps.ask(2);
    EXPECT_GT(some.changed(), 0);
    some.other.end();
    EXPECT_EQ(some.changed(), 0) << "the process has ended";
}

} // namespace
} // namespace zc::holder
