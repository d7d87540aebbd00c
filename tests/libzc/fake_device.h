/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_FAKE_DEVICE_H_INCLUDED
#define ZC_TESTS_FAKE_DEVICE_H_INCLUDED

#include "page.h"
#include "zc_ioctl.h"

#include <map>
#include <mutex>
#include <vector>

namespace zc::test {

/**
 * fake_device - stands in for /dev/zc: exchanges bytes where the module would
 * exchange pages
 *
 * Keeps to zc_ioctl.h: a prefix is exchanged, then why it stopped is said. Where
 * the user had never touched a page, the landing buffer lacks one afterwards.
 * One at a time; installed while it exists. Members are set before the first
 * use; the methods may be called from any thread.
 */
class fake_device {
  public:
    fake_device();
    ~fake_device();
    fake_device(const fake_device &) = delete;
    fake_device &operator=(const fake_device &) = delete;

    int open_error = 0;     /* what opening it gives, e.g. -ENOENT */
    int features_error = 0; /* what ZC_IOC_FEATURES gives */
    int call_error = 0;     /* what ZC_IOC_EXCHANGE gives, having done nothing */
    zc_features features;   /* what ZC_IOC_FEATURES tells */

    /** Makes every exchange stop at the pages of @r, on either side, at most
     *  @times each. */
    void refuse(range r, zc_cause cause, unsigned times = ~0u);
    /** Refuses each page, at random, with this probability in 1/1024. */
    void refuse_some(unsigned probability, unsigned seed);
    void refuse_nothing();
    /** Makes a signal come every @pages pages. */
    void interrupt_every(std::size_t pages) { stride_ = pages; }

    /** The user ranges it was asked for. */
    std::vector<range> calls() const;
    void forget_calls();
    /** Arguments that the module would not have taken. */
    unsigned wrong_arguments() const;

  private:
    struct refusal {
        zc_cause cause;
        unsigned times;
    };

    int open() const;
    int control(unsigned long request, void *argument);
    int tell_features(zc_features &out) const;
    int exchange(zc_exchange &call);
    void exchange_one(zc_range &pair);
    zc_cause verdict(addr_t a, addr_t b);
    static void exchange_page(addr_t a, addr_t b);

    static fake_device *installed;

    mutable std::mutex mutex_;
    std::map<addr_t, refusal> refusals_;
    std::size_t stride_ = 0;
    unsigned probability_ = 0;
    std::uint64_t random_ = 1;
    std::vector<range> calls_;
    unsigned wrong_ = 0;
};

} // namespace zc::test

#endif /* ZC_TESTS_FAKE_DEVICE_H_INCLUDED */
