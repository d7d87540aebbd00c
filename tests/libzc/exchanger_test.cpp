/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchanger.h"

#include "fake_device.h"
#include "support.h"

#include <cerrno>

using namespace zc;
using namespace zc::test;

namespace {

class ExchangerTest : public testing::Test {
  protected:
    static constexpr std::size_t kLen = 16 * kPage;

    ExchangerTest() : user_(kLen), landing_(kLen)
    {
        fill(user_.data(), kLen, 1);
        fill(landing_.data(), kLen, 2);
    }

    exchanger::result run(exchanger &device) { return device.exchange(user_.all(), landing_.at()); }
    /** The first @pages are exchanged, and the others not. */
    void expect_exchanged(std::size_t pages)
    {
        for (std::size_t i = 0; i < kLen; i++) {
            unsigned in_user = i < pages * kPage ? 2 : 1;
            ASSERT_EQ(user_.data()[i], pattern(in_user, i)) << i;
            ASSERT_EQ(landing_.data()[i], pattern(3 - in_user, i)) << i;
        }
    }
    range page(std::size_t i) const { return range_at(user_.at() + i * kPage, kPage); }

    fake_device fake_;
    buffer user_, landing_;
};

} // namespace

TEST_F(ExchangerTest, ExchangesAWholeRange)
{
    exchanger device(true);
    ASSERT_TRUE(device.ready());
    EXPECT_STREQ(device.status(), "ready");
    exchanger::result r = run(device);
    EXPECT_EQ(r.done, kLen);
    EXPECT_EQ(r.cause, ZC_CAUSE_NONE);
    expect_exchanged(kLen / kPage);
    EXPECT_EQ(fake_.calls().size(), 1u);
    EXPECT_EQ(fake_.wrong_arguments(), 0u);
}

TEST_F(ExchangerTest, IsNotOpenedUnlessWanted)
{
    exchanger device(false);
    EXPECT_EQ(device.error(), -ECANCELED);
    EXPECT_STREQ(device.status(), "switched off");
    EXPECT_FALSE(device.usable());
}

TEST_F(ExchangerTest, TellsWhyItCannotBeOpened)
{
    constexpr std::pair<int, const char *> kErrors[] = {
        {-ENOENT, "no /dev/zc"},
        {-ENXIO, "no module behind /dev/zc"},
        {-ENODEV, "no module behind /dev/zc"},
        {-EACCES, "permission denied"},
        {-EPERM, "permission denied"},
        {-EMFILE, "Too many open files"},
    };
    for (auto [error, text] : kErrors) {
        fake_.open_error = error;
        exchanger device(true);
        EXPECT_EQ(device.error(), error);
        EXPECT_STREQ(device.status(), text);
        EXPECT_FALSE(device.ready() || device.usable());
    }
}

TEST_F(ExchangerTest, RefusesADeviceThatDoesNotKnowItsFeatures)
{
    fake_.features_error = -ENOTTY;
    exchanger device(true);
    EXPECT_EQ(device.error(), -EPROTO);
    EXPECT_STREQ(device.status(), "old ABI");
}

TEST_F(ExchangerTest, RefusesADeviceThatDoesNotExchange)
{
    fake_.features.features = ZC_FEATURE_URING;
    EXPECT_EQ(exchanger(true).error(), -EPROTO);
    EXPECT_EQ(exchanger(true).features(), 0u);
}

TEST_F(ExchangerTest, RefusesPagesOfAnotherSize)
{
    fake_.features.page_size = 65536;
    EXPECT_EQ(exchanger(true).error(), -EPROTO);
}

TEST_F(ExchangerTest, HugePagesOfAnotherSizeAreNone)
{
    EXPECT_TRUE(exchanger(true).features() & ZC_FEATURE_HUGE);
    fake_.features.huge_size = 1u << 30;
    EXPECT_FALSE(exchanger(true).features() & ZC_FEATURE_HUGE);
}

TEST_F(ExchangerTest, StopsAtARefusedPage)
{
    exchanger device(true);
    fake_.refuse(page(5), ZC_CAUSE_PINNED);
    exchanger::result r = run(device);
    EXPECT_EQ(r.done, 5 * kPage);
    EXPECT_EQ(r.cause, ZC_CAUSE_PINNED);
    expect_exchanged(5);
    EXPECT_EQ(fake_.calls().size(), 1u);
}

TEST_F(ExchangerTest, StopsAtARefusedPageOfTheLandingBuffer)
{
    exchanger device(true);
    fake_.refuse(range_at(landing_.at() + 7 * kPage, kPage), ZC_CAUSE_COW);
    exchanger::result r = run(device);
    EXPECT_EQ(r.done, 7 * kPage);
    EXPECT_EQ(r.cause, ZC_CAUSE_COW);
}

TEST_F(ExchangerTest, GoesOnAfterASignalWithTheRemainder)
{
    exchanger device(true);
    fake_.interrupt_every(5);
    exchanger::result r = run(device);
    EXPECT_EQ(r.done, kLen);
    EXPECT_EQ(r.cause, ZC_CAUSE_NONE);
    expect_exchanged(kLen / kPage);
    EXPECT_EQ(fake_.calls(), (std::vector<range>{user_.all(),
                                                 {page(5).begin, user_.all().end},
                                                 {page(10).begin, user_.all().end},
                                                 {page(15).begin, user_.all().end}}));
}

TEST_F(ExchangerTest, TriesAPageInTransitAgain)
{
    exchanger device(true);
    fake_.refuse(page(3), ZC_CAUSE_RACED, 3);
    fake_.refuse(page(9), ZC_CAUSE_RACED, 3);
    EXPECT_EQ(run(device).done, kLen);
    expect_exchanged(kLen / kPage);
}

TEST_F(ExchangerTest, ButNotForEver)
{
    for (zc_cause cause : {ZC_CAUSE_RACED, ZC_CAUSE_INTERRUPTED}) {
        exchanger device(true);
        fake_.refuse(user_.all(), cause);
        fake_.forget_calls();
        exchanger::result r = run(device);
        EXPECT_EQ(r.done, 0u);
        EXPECT_EQ(r.cause, cause);
        EXPECT_EQ(fake_.calls().size(), 4u);
        expect_exchanged(0);
    }
}

TEST_F(ExchangerTest, AnErrorWithoutACauseIsUnknown)
{
    exchanger device(true);
    for (int error : {-ENOTTY, -EFAULT, -EBADF, -EPERM}) {
        fake_.call_error = error;
        exchanger::result r = run(device);
        EXPECT_EQ(r.done, 0u);
        EXPECT_EQ(r.cause, ZC_CAUSE_COUNT);
    }
}

TEST_F(ExchangerTest, ACauseNewerThanOursIsUnknown)
{
    exchanger device(true);
    fake_.refuse(page(2), static_cast<zc_cause>(ZC_CAUSE_COUNT + 1));
    exchanger::result r = run(device);
    EXPECT_EQ(r.done, 2 * kPage);
    EXPECT_EQ(r.cause, ZC_CAUSE_COUNT);
}

TEST_F(ExchangerTest, RestsWhileTheAddressSpaceIsMirrored)
{
    exchanger device(true);
    EXPECT_TRUE(device.usable());
    fake_.refuse(page(0), ZC_CAUSE_NOTIFIER, 1);
    EXPECT_EQ(run(device).cause, ZC_CAUSE_NOTIFIER);
    int refused = 0;
    while (!device.usable())
        refused++;
    EXPECT_EQ(refused, 1024);
    EXPECT_TRUE(device.usable());
    EXPECT_EQ(run(device).done, kLen);
}
