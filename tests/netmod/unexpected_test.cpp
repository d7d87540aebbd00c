// SPDX-License-Identifier: BSD-3-Clause
// The queue of unexpected messages against a list that is searched as MPI's rules say.
#include "zc_unexpected.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <vector>

namespace {

constexpr int32_t kTagMask = 0x7fffffff & ~(1 << 30);

struct Model {
    int source, tag;
    uint16_t context;
    uint64_t number;
    size_t bytes;
};

class Queue : public testing::Test {
  protected:
    Queue() { MPIDI_ZC_unexpected_init(&queue, kTagMask); }

    ~Queue() override
    {
        while (queue.first != nullptr)
            take(queue.first);
        MPIDI_ZC_unexpected_free(&queue);
        EXPECT_EQ(queue.cells.mapped, 0U);
    }

    MPIDI_ZC_message_t *append(int source, int tag, uint16_t context, uint64_t number,
                               size_t bytes = 8)
    {
        MPIDI_ZC_message_t *m = MPIDI_ZC_message_new(&queue, bytes);
        EXPECT_NE(m, nullptr);
        m->source = source;
        m->tag = tag;
        m->context = context;
        m->sender = number;
        std::memset(m->data, static_cast<int>(number & 0xff), bytes);
        MPIDI_ZC_unexpected_append(&queue, m);
        return m;
    }

    // Its number; the message is gone.
    uint64_t take(MPIDI_ZC_message_t *m)
    {
        const uint64_t number = m->sender;
        for (size_t i = 0; i < m->room; i++)
            EXPECT_EQ(static_cast<unsigned char>(m->data[i]), number & 0xff);
        MPIDI_ZC_unexpected_take(&queue, m);
        MPIDI_ZC_message_free(&queue, m);
        return number;
    }

    MPIDI_ZC_unexpected_t queue;
};

bool fits(const Model &m, int source, int tag, uint16_t context)
{
    return m.context == context && (source == MPIDI_ZC_ANY_SOURCE || source == m.source) &&
           (tag == MPIDI_ZC_ANY_TAG || tag == (m.tag & kTagMask));
}

TEST_F(Queue, EightBytesTakeOneCacheLine)
{
    EXPECT_EQ(MPIDI_ZC_message_size(0), 64U);
    EXPECT_EQ(MPIDI_ZC_message_size(8), 64U);
    EXPECT_EQ(MPIDI_ZC_message_size(9), 96U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(append(0, 0, 0, 0)) % 32, 0U);
}

TEST_F(Queue, CellsFitAndWasteAtMostHalf)
{
    for (size_t bytes = 1; bytes <= 300'000; bytes += bytes < 5000 ? 1 : 977) {
        const size_t size = MPIDI_ZC_cell_size(bytes);
        ASSERT_GE(size, bytes);
        ASSERT_EQ(size % 32, 0U);
        if (bytes > 64) {
            ASSERT_LE(size, bytes + bytes / 2 + 128 * (bytes > 4096)) << bytes;
        }
    }
}

TEST_F(Queue, FirstOfItsEnvelopeComesFirst)
{
    for (int length : {5, MPIDI_ZC_INDEX_BUILD - 1, MPIDI_ZC_INDEX_BUILD, 1000}) {
        for (int i = 0; i < length; i++)
            append(1, i % 3, 7, static_cast<uint64_t>(i));
        for (int i = 0; i < length; i++) {
            MPIDI_ZC_message_t *m = MPIDI_ZC_unexpected_find(&queue, 1, i % 3, 7);
            ASSERT_NE(m, nullptr);
            ASSERT_EQ(take(m), static_cast<uint64_t>(i));
        }
        ASSERT_EQ(queue.length, 0U);
        ASSERT_EQ(queue.buckets, nullptr);
    }
}

TEST_F(Queue, BitsOutsideTheMaskAreNotCompared)
{
    for (int length : {1, 200}) {
        for (int i = 0; i < length; i++)
            append(1, i | 1 << 30, 7, static_cast<uint64_t>(i));
        for (int i = length; i-- > 0;) {
            MPIDI_ZC_message_t *m = MPIDI_ZC_unexpected_find(&queue, 1, i, 7);
            ASSERT_NE(m, nullptr) << i;
            ASSERT_EQ(take(m), static_cast<uint64_t>(i));
        }
    }
}

// Messages of few or many envelopes come and go; every search agrees with the model.
TEST_F(Queue, AgreesWithAListUnderRandomUse)
{
    for (uint32_t seed = 1; seed <= 60; seed++) {
        std::mt19937 random(seed);
        auto below = [&random](int n) {
            return static_cast<int>(random() % static_cast<uint32_t>(n));
        };
        const int tags = 1 + below(seed % 3 == 0 ? 2000 : 12);
        const int sources = 1 + below(5);
        // In turns the queue grows past the index's making and shrinks past its end.
        std::vector<Model> model;
        uint64_t number = 0;
        for (int step = 0; step < 4000; step++) {
            const bool growing = (step / 700) % 2 == 0;
            if (below(10) < (growing ? 7 : 3)) {
                Model m{below(sources), below(tags) | (below(50) == 0 ? 1 << 30 : 0),
                        static_cast<uint16_t>(below(3)), number++,
                        static_cast<size_t>(below(20) == 0 ? below(20'000) : below(100))};
                append(m.source, m.tag, m.context, m.number, m.bytes);
                model.push_back(m);
                continue;
            }
            const int source = below(6) == 0 ? MPIDI_ZC_ANY_SOURCE : below(sources);
            const int tag = below(6) == 0 ? MPIDI_ZC_ANY_TAG : below(tags);
            const auto context = static_cast<uint16_t>(below(3));
            auto wanted = std::find_if(model.begin(), model.end(), [&](const Model &m) {
                return fits(m, source, tag, context);
            });
            MPIDI_ZC_message_t *found = MPIDI_ZC_unexpected_find(&queue, source, tag, context);
            ASSERT_EQ(found != nullptr, wanted != model.end()) << "seed " << seed;
            if (found != nullptr) {
                ASSERT_EQ(found->sender, wanted->number) << "seed " << seed;
                if (below(4) != 0) {
                    take(found);
                    model.erase(wanted);
                }
            }
            ASSERT_EQ(queue.length, model.size());
        }
        while (!model.empty()) {
            const size_t i = static_cast<size_t>(below(static_cast<int>(model.size())));
            const Model m = model[i];
            MPIDI_ZC_message_t *found =
                MPIDI_ZC_unexpected_find(&queue, m.source, m.tag & kTagMask, m.context);
            auto wanted = std::find_if(model.begin(), model.end(), [&](const Model &other) {
                return fits(other, m.source, m.tag & kTagMask, m.context);
            });
            ASSERT_NE(found, nullptr);
            ASSERT_EQ(take(found), wanted->number);
            model.erase(wanted);
        }
    }
}

TEST_F(Queue, MillionsTakeLittleMoreThanTheirCellsAndGiveAllBack)
{
    constexpr uint64_t kMessages = 3'000'000;
    for (uint64_t i = 0; i < kMessages; i++)
        append(1, static_cast<int>(i % 1000), 7, i);
    EXPECT_LE(queue.cells.mapped, kMessages * 65 + (4U << 20));
    // Every second of one envelope first, from the middle of the queue, then all in order.
    std::vector<uint64_t> next(1000);
    for (uint64_t tag = 0; tag < 1000; tag += 2) {
        MPIDI_ZC_message_t *m = MPIDI_ZC_unexpected_find(&queue, 1, static_cast<int>(tag), 7);
        ASSERT_NE(m, nullptr);
        ASSERT_EQ(take(m), tag);
        next[tag] = 1;
    }
    for (uint64_t i = 0; i < kMessages; i++) {
        const uint64_t tag = i % 1000;
        if (i / 1000 < next[tag])
            continue;
        MPIDI_ZC_message_t *m = MPIDI_ZC_unexpected_find(&queue, 1, static_cast<int>(tag), 7);
        ASSERT_NE(m, nullptr);
        ASSERT_EQ(take(m), i);
    }
    EXPECT_EQ(queue.length, 0U);
    EXPECT_LE(queue.cells.mapped, 8U << 20);
}

// What stays behind here and there does not keep the memory of the others.
TEST_F(Queue, MemoryOfOtherSizesIsUsedAgain)
{
    std::deque<uint64_t> sizes{8, 40, 200, 1000, 4000, 8, 100'000, 500};
    for (size_t bytes : sizes) {
        for (uint64_t i = 0; i < (32U << 20) / (bytes + 64); i++)
            append(1, 5, 7, i, bytes);
        EXPECT_LE(queue.cells.mapped, 64U << 20);
        while (MPIDI_ZC_message_t *m = MPIDI_ZC_unexpected_find(&queue, 1, 5, 7))
            take(m);
        append(1, 6, 7, 1, bytes);
    }
    EXPECT_LE(queue.cells.mapped, 20U << 20);
}

// A limit of addresses, or of memory that is locked, leaves no room for a chunk as long as usual.
TEST_F(Queue, MessagesWaitWhereThereIsLittleRoom)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer needs addresses of its own";
#endif
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    const rlimit little{pages * 4096 + (512U << 10), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
    std::vector<MPIDI_ZC_message_t *> made(2000);
    for (MPIDI_ZC_message_t *&m : made)
        m = MPIDI_ZC_message_new(&queue, 8);
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_EQ(std::count(made.begin(), made.end(), nullptr), 0);
    for (MPIDI_ZC_message_t *m : made)
        if (m != nullptr)
            MPIDI_ZC_message_free(&queue, m);
}

} // namespace
