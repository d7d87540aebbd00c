/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool.h"

#include "support.h"

#include <cerrno>

using namespace zc;
using namespace zc::test;

namespace {

class PoolTest : public testing::Test {
  protected:
    PoolTest() : splits_(1000, 65530), pool_(8 * MiB, splits_) {}
    ~PoolTest() override { kernel = kernel_calls_real; }

    slot *acquire(std::size_t len, addr_t expected = 16, placement place = placement::page)
    {
        slot *s = nullptr;
        EXPECT_EQ(pool_.acquire(len, expected, place, &s), 0);
        return s;
    }
    int error(std::size_t len)
    {
        slot *s = nullptr;
        return pool_.acquire(len, 16, placement::page, &s);
    }

    splits splits_;
    pool pool_;
};

} // namespace

TEST_F(PoolTest, PopulatesJustThePagesNeeded)
{
    slot *s = acquire(10 * kPage, 16);
    EXPECT_EQ(resident_bytes(s->span), 11 * kPage);
    EXPECT_EQ(pool_.report().populated_now, 11 * kPage);
    EXPECT_EQ(pool_.report().in_use_now, 10 * kPage);
    pool_.release(s);
    EXPECT_EQ(pool_.report().in_use_now, 0u);
}

TEST_F(PoolTest, AcquiredMemoryDoesNotFault)
{
    slot *s = acquire(MiB);
    long before = minor_faults();
    for (std::size_t i = 0; i < s->len; i += kPage)
        static_cast<volatile char *>(as_pointer(s->data))[i] = 1;
    EXPECT_TRUE(kSanitized || minor_faults() == before);
    pool_.release(s);
}

TEST_F(PoolTest, IsCongruentWithTheExpectedAddress)
{
    slot *small = acquire(MiB, 123 * kHuge + 77 * kPage + 5);
    EXPECT_TRUE(congruent(small->data, 5, kPage));
    slot *table = acquire(4 * MiB, 123 * kHuge + 77 * kPage + 5, placement::table);
    EXPECT_TRUE(congruent(table->data, 77 * kPage + 5, kHuge));
}

TEST_F(PoolTest, ReusesTheSlotWithThePages)
{
    slot *first = acquire(MiB);
    pool_.release(first);
    for (int i = 0; i < 10; i++) {
        slot *s = acquire(MiB - static_cast<std::size_t>(i) * 100);
        EXPECT_EQ(s, first);
        pool_.release(s);
    }
    EXPECT_EQ(pool_.report().pages_populated, MiB / kPage + 1);
}

TEST_F(PoolTest, RefusesWhatCanNeverFit)
{
    EXPECT_EQ(error(8 * MiB), -EMSGSIZE) << "with its offset it is a page too long";
    EXPECT_EQ(error(100 * MiB), -EMSGSIZE);
    slot *s = acquire(8 * MiB - kPage);
    EXPECT_EQ(pool_.report().populated_now, 8 * MiB);
    pool_.release(s);
}

TEST_F(PoolTest, RefusesWhileTheBudgetIsInUse)
{
    slot *s = acquire(6 * MiB);
    EXPECT_EQ(error(3 * MiB), -ENOBUFS);
    EXPECT_EQ(pool_.report().refused_budget, 1u);
    slot *other = acquire(MiB);
    pool_.release(s);
    EXPECT_EQ(error(3 * MiB), 0);
    EXPECT_LE(pool_.report().populated_max, 8 * MiB);
    pool_.release(other);
}

TEST_F(PoolTest, FreeSlotsMakeRoomForOtherSizes)
{
    for (std::size_t len : {6 * MiB, 7 * MiB, 200 * KiB, 5 * MiB, 3 * MiB, 7 * MiB}) {
        slot *s = acquire(len);
        EXPECT_LE(pool_.report().populated_now, 8 * MiB);
        pool_.release(s);
    }
    EXPECT_GT(pool_.report().forced_trims, 0u);
    EXPECT_LE(pool_.report().populated_max, 8 * MiB);
}

/* One slot, one message after another at other offsets within 2 MiB: the
 * pages left behind at old offsets must not add up to more than the budget. */
TEST_F(PoolTest, AWanderingOffsetStaysInBudget)
{
    for (std::size_t page = 0; page < 512; page += 37) {
        slot *s = acquire(7 * MiB, page * kPage, placement::table);
        EXPECT_LE(resident_bytes(s->span), 8 * MiB);
        EXPECT_EQ(resident_bytes(s->span), s->populated.bytes());
        pool_.release(s);
    }
    EXPECT_LE(pool_.report().populated_max, 8 * MiB);
}

TEST_F(PoolTest, TrimGivesMemoryBack)
{
    slot *s = acquire(MiB);
    range span = s->span;
    EXPECT_EQ(pool_.trim(now_ns()), 0u) << "in use";
    pool_.release(s);
    EXPECT_EQ(pool_.trim(0), 0u) << "not idle for long enough";
    EXPECT_EQ(pool_.trim(now_ns()), MiB + kPage);
    EXPECT_EQ(pool_.report().populated_now, 0u);
    EXPECT_EQ(resident_bytes(span), 0u);
}

TEST_F(PoolTest, PopulationFailingIsReportedAndUndone)
{
    kernel.populate = [](range) { return -ENOMEM; };
    EXPECT_EQ(error(MiB), -ENOMEM);
    kernel = kernel_calls_real;
    EXPECT_EQ(pool_.report().populated_now, 0u);
    EXPECT_EQ(pool_.report().in_use_now, 0u);
    pool_.release(acquire(MiB));
}

TEST_F(PoolTest, AnExchangeSwapsTheRolesAndKeepsTheSum)
{
    slot *s = acquire(MiB);
    range body = whole_units(s->message_of(MiB), kPage);
    slot *spare = pool_.take_spare(*s, body);
    ASSERT_NE(spare, nullptr);
    EXPECT_EQ(spare->populated.bytes(), 0u);
    std::size_t before = pool_.report().populated_now;
    pool_.exchanged(*s, body, *spare, {});
    EXPECT_EQ(pool_.report().populated_now, before);
    EXPECT_EQ(spare->populated.bytes(), body.size());
    EXPECT_EQ(s->populated.bytes(), before - body.size());
    pool_.give_spare(spare);
    pool_.release(s);
}

/* A user's buffer may never have been touched: what comes back is empty, and
 * the next to acquire it must not fault. */
TEST_F(PoolTest, ReturnedHolesAreFilledBeforeUse)
{
    slot *s = acquire(MiB);
    range body = whole_units(s->message_of(MiB), kPage);
    slot *spare = pool_.take_spare(*s, body);
    pool_.exchanged(*s, body, *spare, {});
    ASSERT_EQ(kernel_calls_real.discard(body), 0); /* as if it had moved */
    pool_.give_spare(spare);
    pool_.release(s);

    slot *again = acquire(MiB);
    EXPECT_EQ(again, spare) << "the slot that is charged for the pages";
    EXPECT_EQ(resident_bytes(touched_units(again->message_of(MiB), kPage)), MiB + kPage);
    pool_.release(again);
}

TEST_F(PoolTest, InheritedPropertiesAreReset)
{
    slot *s = acquire(MiB);
    range body = whole_units(s->message_of(MiB), kPage);
    slot *spare = pool_.take_spare(*s, body);
    addr_t cuts[] = {spare->span.begin + kPage};
    pool_.exchanged(*s, body, *spare, cuts);
    ASSERT_EQ(madvise(as_pointer(spare->span.begin), MiB, MADV_DONTFORK), 0);
    ASSERT_EQ(madvise(as_pointer(spare->span.begin), MiB, MADV_WIPEONFORK), 0);
    pool_.give_spare(spare);
    pool_.release(s);
    slot *again = acquire(MiB);
    ASSERT_EQ(again, spare);
    std::string flags = vm_flags(again->data);
    EXPECT_EQ(flags.find(" dc"), flags.npos) << flags;
    EXPECT_EQ(flags.find(" wf"), flags.npos) << flags;
}

TEST_F(PoolTest, HugeSlotsAreHugeInsideAndSmallAtTheEnds)
{
    if (!huge_pages_available())
        GTEST_SKIP() << "no transparent huge pages here";
    slot *s = acquire(5 * MiB, MiB + 16, placement::huge);
    EXPECT_EQ(huge_bytes(s->span), 4 * MiB);
    EXPECT_EQ(resident_bytes(s->span), s->populated.bytes());
    EXPECT_EQ(s->populated.bytes(), 5 * MiB + kPage);
    pool_.release(s);
}

TEST_F(PoolTest, ManySmallSlotsFillTheBudgetExactly)
{
    pool tiny(kPage * 64, splits_);
    std::vector<slot *> taken;
    slot *s = nullptr;
    int err = 0;
    for (int i = 0; i < 100 && err == 0; i++)
        if ((err = tiny.acquire(kPage, 0, placement::page, &s)) == 0)
            taken.push_back(s);
    EXPECT_EQ(err, -ENOBUFS);
    EXPECT_EQ(taken.size(), 64u);
}

namespace {

/* Asks the kernel, each time that memory has been added to the arena. */
struct onlooker {
    range arena;
    std::size_t most = 0;
} watched;

int watched_populate(range r)
{
    int err = kernel_calls_real.populate(r);
    watched.most = std::max(watched.most, resident_bytes(watched.arena));
    return err;
}

} // namespace

TEST_F(PoolTest, TheKernelNeverCountsMoreThanTheBudget)
{
    watched = {pool_.addresses()};
    kernel.populate = watched_populate;
    std::mt19937 random(5);
    std::vector<slot *> held;
    for (int i = 0; i < 300; i++) {
        bool large = random() % 8 == 0;
        slot *s = nullptr;
        placement place = large ? placement::table : placement::page;
        int err = pool_.acquire(1 + random() % (large ? 7 * MiB : MiB), random(), place, &s);
        if (!err)
            held.push_back(s);
        while (!held.empty() && (err || random() % 3)) {
            pool_.release(held.back());
            held.pop_back();
        }
    }
    for (slot *s : held)
        pool_.release(s);
    EXPECT_GT(watched.most, 6 * MiB);
    EXPECT_LE(watched.most, 8 * MiB);
    EXPECT_GT(pool_.report().forced_trims, 0u);
}
