/* SPDX-License-Identifier: BSD-3-Clause */
#include "rebind.h"

#include "support.h"

#include <cerrno>

using namespace zc;
using namespace zc::test;

namespace {

/* The real move, except that the calls numbered here fail (counted from 1). */
std::vector<int> failing;
int fail_with;
int calls;

int failing_move(addr_t from, addr_t to, std::size_t len)
{
    calls++;
    if (std::find(failing.begin(), failing.end(), calls) != failing.end())
        return fail_with;
    return kernel_calls_real.move(from, to, len);
}

class RebindTest : public testing::Test {
  protected:
    static constexpr std::size_t kLen = 64 * KiB;

    RebindTest() : user_(kLen), landing_(kLen), spare_(kLen)
    {
        fill(user_.data(), kLen, 1);
        fill(landing_.data(), kLen, 2);
        pieces_.add(user_.all());
        calls = 0;
        kernel.move = failing_move;
    }
    ~RebindTest() override { kernel = kernel_calls_real; }

    exchange_result run()
    {
        return exchange_pages({user_.all(), landing_.at(), spare_.at(), pieces_, cuts_});
    }
    void fail(std::vector<int> which, int error)
    {
        failing = std::move(which);
        fail_with = error;
    }
    static bool holds(const buffer &b, unsigned seed)
    {
        return first_wrong(b.data(), kLen, seed) == kLen;
    }
    static bool is_empty(const buffer &b) { return resident_bytes(b.all()) == 0; }

    buffer user_, landing_, spare_;
    vma_pieces pieces_;
    std::vector<addr_t> cuts_;
};

} // namespace

TEST_F(RebindTest, RotatesThroughTheSpare)
{
    fail({}, 0);
    exchange_result r = run();
    EXPECT_EQ(r.error, 0);
    EXPECT_EQ(r.moved, kLen);
    EXPECT_TRUE(is_empty(landing_));
    EXPECT_TRUE(holds(user_, 2));
    EXPECT_TRUE(holds(spare_, 1));
    EXPECT_EQ(calls, 2);
}

TEST_F(RebindTest, ChangesNoProtectionOrFlag)
{
    fail({}, 0);
    std::string before = vm_flags(user_.at());
    run();
    EXPECT_EQ(vm_flags(user_.at()), before);
    EXPECT_EQ(vm_flags(landing_.at()), before);
    EXPECT_EQ(vm_flags(spare_.at()), before);
}

TEST_F(RebindTest, FirstMoveFailing)
{
    fail({1}, -ENOMEM);
    exchange_result r = run();
    EXPECT_EQ(r.error, -ENOMEM);
    EXPECT_EQ(r.moved, 0u);
    EXPECT_TRUE(holds(user_, 1) && holds(landing_, 2) && is_empty(spare_));
}

TEST_F(RebindTest, SecondMoveFailingBringsTheUsersPagesBack)
{
    for (int error : {-ENOMEM, -EAGAIN, -EFAULT}) {
        calls = 0;
        fail({2}, error);
        exchange_result r = run();
        EXPECT_EQ(r.error, error);
        EXPECT_EQ(r.moved, 0u);
        EXPECT_TRUE(holds(user_, 1) && holds(landing_, 2) && is_empty(spare_));
        EXPECT_EQ(calls, 3);
    }
}

TEST_F(RebindTest, BringingBackFailingTooLeavesTheUserMapped)
{
    fail({2, 3}, -ENOMEM);
    exchange_result r = run();
    EXPECT_EQ(r.moved, 0u);
    EXPECT_TRUE(is_mapped(user_.all()));
    EXPECT_TRUE(holds(landing_, 2)) << "the message must survive to be copied";
}

/* As old kernels do it: the target is unmapped before the failure. */
TEST_F(RebindTest, ATargetLostInAFailureIsMappedAgain)
{
    kernel.move = [](addr_t from, addr_t to, std::size_t len) {
        if (++calls == 1)
            return kernel_calls_real.move(from, to, len);
        munmap(as_pointer(to), len);
        return -ENOMEM;
    };
    exchange_result r = run();
    EXPECT_EQ(r.error, -ENOMEM);
    EXPECT_TRUE(is_mapped(user_.all()));
    std::memset(user_.data(), 3, kLen);
    EXPECT_TRUE(holds(landing_, 2));
}

TEST_F(RebindTest, ALostSpareIsMappedAgain)
{
    kernel.move = [](addr_t, addr_t to, std::size_t len) {
        munmap(as_pointer(to), len);
        return -ENOMEM;
    };
    EXPECT_EQ(run().error, -ENOMEM);
    EXPECT_TRUE(is_mapped(spare_.all()));
    EXPECT_TRUE(holds(user_, 1));
}

TEST_F(RebindTest, GoesVmaByVma)
{
    fail({}, 0);
    ASSERT_EQ(madvise(user_.data() + 4 * kPage, kPage, MADV_DONTDUMP), 0);
    ASSERT_EQ(madvise(landing_.data() + 2 * kPage, 5 * kPage, MADV_DONTDUMP), 0);
    pieces_.clear();
    pieces_.add(range_at(user_.at(), 4 * kPage));
    pieces_.add(range_at(user_.at() + 4 * kPage, kPage));
    pieces_.add({user_.at() + 5 * kPage, user_.at() + kLen});
    cuts_ = {landing_.at() + 2 * kPage, landing_.at() + 7 * kPage};
    exchange_result r = run();
    EXPECT_EQ(r.error, 0);
    EXPECT_EQ(calls, 6);
    EXPECT_TRUE(holds(user_, 2) && holds(spare_, 1) && is_empty(landing_));
}

TEST_F(RebindTest, APartialExchangeReportsWhatMoved)
{
    cuts_ = {landing_.at() + 4 * kPage, landing_.at() + 9 * kPage};
    fail({3}, -EAGAIN);
    exchange_result r = run();
    EXPECT_EQ(r.error, -EAGAIN);
    EXPECT_EQ(r.moved, 4 * kPage);
    EXPECT_EQ(first_wrong(user_.data(), kLen, 2), 4 * kPage);
    for (std::size_t i = 4 * kPage; i < kLen; i++)
        ASSERT_EQ(user_.data()[i], pattern(1, i));
    for (std::size_t i = 4 * kPage; i < kLen; i++)
        ASSERT_EQ(landing_.data()[i], pattern(2, i));
}

TEST_F(RebindTest, LaterPieceOfTheFirstMoveFailing)
{
    pieces_.clear();
    pieces_.add(range_at(user_.at(), 4 * kPage));
    pieces_.add({user_.at() + 4 * kPage, user_.at() + kLen});
    fail({2}, -ENOMEM);
    exchange_result r = run();
    EXPECT_EQ(r.moved, 0u);
    EXPECT_TRUE(holds(user_, 1) && holds(landing_, 2) && is_empty(spare_));
}

TEST(ForEachPartTest, CutsTheRange)
{
    std::vector<range> parts;
    addr_t cuts[] = {5, 10, 15, 20, 30};
    for_each_part(10, 10, cuts, [&](range r) {
        parts.push_back(r);
        return true;
    });
    EXPECT_EQ(parts, (std::vector<range>{{10, 15}, {15, 20}}));
}
