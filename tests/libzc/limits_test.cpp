/* SPDX-License-Identifier: BSD-3-Clause */
/* Little address space, or little memory that may be locked: landing takes a small part
 * of it, and what cannot be had is done without. */
#include "support.h"
#include "vma.h"

#include <cerrno>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace zc;
using namespace zc::test;

namespace {

constexpr std::size_t GiB = 1024 * MiB;

/** Runs @f, which returns what is wrong or nullptr, in a process of its own. */
template <typename F>
std::string in_a_child(F f)
{
    int ends[2];
    if (pipe(ends) != 0)
        return "no pipe";
    pid_t child = fork();
    if (child == 0) {
        const char *wrong = f();
        ssize_t n = wrong ? write(ends[1], wrong, std::strlen(wrong)) : 0;
        _exit(n < 0);
    }
    close(ends[1]);
    std::string said(200, '\0');
    ssize_t n = read(ends[0], said.data(), said.size());
    said.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    close(ends[0]);
    int status = -1;
    waitpid(child, &status, 0);
    return said.empty() && status != 0 ? "died: " + std::to_string(status) : said;
}

void limit_addresses_to(std::size_t more)
{
    rlimit limit{mapped_bytes() + more, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
}

zc_stats_t stats_of(zc_t *zc)
{
    zc_stats_t s{};
    s.size = sizeof(s);
    zc_stats(zc, &s);
    return s;
}

class LimitsTest : public testing::Test {
  protected:
    void SetUp() override
    {
        if (kSanitized)
            GTEST_SKIP() << "sanitizers reserve terabytes of addresses themselves";
    }
    std::vector<std::string> lines_;
    zc_params_t params_ = [this] {
        zc_params_t p{};
        p.size = sizeof(p);
        p.flags = ZC_FLAG_ALWAYS_REBIND;
        p.means = 1u << ZC_MEANS_COPY | 1u << ZC_MEANS_MREMAP;
        p.log = [](void *arg, const char *line) {
            static_cast<std::vector<std::string> *>(arg)->push_back(line);
        };
        p.log_arg = &lines_;
        return p;
    }();

    /** Runs @f in a process that has @more addresses left when it creates its zc_t. */
    template <typename F>
    std::string with_addresses(std::size_t more, F f)
    {
        return in_a_child([&]() -> const char * {
            limit_addresses_to(more);
            zc_t *zc = nullptr;
            return zc_create(&params_, &zc) == 0 ? f(zc) : "not created";
        });
    }

    /** Delivers 64 KiB; the reason why they were copied. */
    zc_reason_t reason_of_a_delivery(zc_t *zc)
    {
        alignas(4096) static char target[128 * KiB];
        zc_landing_t *l = nullptr;
        zc_delivery_t how{};
        if (zc_landing_acquire(zc, 64 * KiB, target, &l) != 0)
            return ZC_REASON_COUNT;
        fill(static_cast<char *>(zc_landing_data(l)), 64 * KiB, 5);
        zc_deliver(zc, l, target, 64 * KiB, &how);
        return first_wrong(target, 64 * KiB, 5) == 64 * KiB ? how.reason : ZC_REASON_COUNT;
    }
};

} // namespace

TEST_F(LimitsTest, MostAddressesAreLeftToTheProgram)
{
    std::string wrong = with_addresses(4 * GiB, [&](zc_t *zc) -> const char * {
        void *most = mmap(nullptr, 3 * GiB, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (most == MAP_FAILED)
            return "three quarters cannot be mapped any more";
        if (reason_of_a_delivery(zc) != ZC_REASON_NONE)
            return "not rebound";
        return lines_.empty() ? nullptr : "something was logged";
    });
    EXPECT_EQ(wrong, "");
}

TEST_F(LimitsTest, WithFewAddressesWhatLandsIsCopied)
{
    std::string wrong = with_addresses(64 * MiB, [&](zc_t *zc) -> const char * {
        if (lines_.size() != 1 || lines_[0].find("RLIMIT_AS") == std::string::npos)
            return "why was not logged";
        if (reason_of_a_delivery(zc) != ZC_REASON_NO_MEMORY)
            return "not copied for want of memory";
        if (stats_of(zc).copied_by_reason[ZC_REASON_NO_MEMORY] != 1)
            return "not counted";
        zc_landing_t *l = nullptr;
        if (zc_landing_acquire(zc, 32 * MiB, nullptr, &l) != -EMSGSIZE)
            return "more than there are addresses for";
        if (stats_of(zc).refused_addresses != 1)
            return "the refusal was not counted";
        zc_destroy(zc);
        return nullptr;
    });
    EXPECT_EQ(wrong, "");
}

TEST_F(LimitsTest, WithNoAddressesNothingLands)
{
    std::string wrong = with_addresses(MiB, [&](zc_t *zc) -> const char * {
        zc_landing_t *l = nullptr;
        if (zc_landing_acquire(zc, 64 * KiB, nullptr, &l) != -EMSGSIZE)
            return "landed";
        zc_costs_t costs{};
        costs.size = sizeof(costs);
        if (zc_calibrate(zc, &costs) != 0)
            return "not calibrated";
        zc_destroy(zc);
        return nullptr;
    });
    EXPECT_EQ(wrong, "");
}

/* Slots are small beside what they may use together: with all of them taken, one more
 * waits for those. */
TEST_F(LimitsTest, AddressesInUseComeFreeAgain)
{
    std::string wrong = with_addresses(64 * MiB, [&](zc_t *zc) -> const char * {
        zc_landing_t *l[100] = {};
        int taken = 0, err = 0;
        while (taken < 100 && (err = zc_landing_acquire(zc, MiB, nullptr, &l[taken])) == 0)
            taken++;
        if (taken == 0 || err != -ENOBUFS)
            return "not told to wait";
        zc_landing_release(zc, l[0]);
        return zc_landing_acquire(zc, MiB, nullptr, &l[0]) == 0 ? nullptr : "still none";
    });
    EXPECT_EQ(wrong, "");
}

TEST_F(LimitsTest, LockingAllThatComesIsNoReasonToFail)
{
    EXPECT_EQ(in_a_child([&]() -> const char * {
                  rlimit little{8 * MiB, 8 * MiB};
                  setrlimit(RLIMIT_MEMLOCK, &little);
                  if (setuid(65534) != 0 && geteuid() == 0)
                      return "cannot become another user";
                  constexpr int kFuture = 2;
                  if (syscall(SYS_mlockall, kFuture) != 0)
                      return "cannot lock";
                  zc_t *zc = nullptr;
                  if (zc_create(&params_, &zc) != 0)
                      return "not created";
                  zc_stats_t s = stats_of(zc);
                  if (s.addresses == 0 || s.addresses > 8 * MiB)
                      return "an odd number of addresses";
                  if (reason_of_a_delivery(zc) != ZC_REASON_NO_MEMORY)
                      return "not copied for want of memory";
                  return nullptr;
              }),
              "");
}

/* With the right to lock everything: a slot is populated by the page all the same. */
TEST_F(LimitsTest, LockedOrNotTheBudgetHolds)
{
    constexpr int kFuture = 2;
    /* Locks nothing in this process: asked in a child. */
    const std::string unable = in_a_child([]() -> const char * {
        rlimit limit{};
        if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || syscall(SYS_mlockall, kFuture) != 0)
            return "cannot lock its memory";
        /* Without the right to, a mapping beyond the limit fails. */
        std::size_t beyond = limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur + MiB;
        return beyond == 0 || mmap(nullptr, beyond, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                   0) != MAP_FAILED
                   ? nullptr
                   : "may lock no more than its limit (RLIMIT_MEMLOCK)";
    });
    if (!unable.empty())
        GTEST_SKIP() << "this process " << unable;
    EXPECT_EQ(in_a_child([&]() -> const char * {
                  if (syscall(SYS_mlockall, kFuture) != 0)
                      return "cannot lock";
                  params_.budget_bytes = 8 * MiB;
                  zc_t *zc = nullptr;
                  zc_landing_t *l = nullptr;
                  if (zc_create(&params_, &zc) != 0)
                      return "not created";
                  if (zc_landing_acquire(zc, 64 * KiB, as_pointer(2 * MiB), &l) != 0)
                      return "not acquired";
                  std::string flags = vm_flags(as_address(zc_landing_data(l)));
                  if (flags.find(" lo") != flags.npos)
                      return "locked";
                  zc_landing_release(zc, l);
                  return zc_pool_trim(zc, 1) == 64 * KiB ? nullptr : "not all given back";
              }),
              "");
}
