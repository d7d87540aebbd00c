/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_EXCHANGER_H_INCLUDED
#define ZC_EXCHANGER_H_INCLUDED

#include "page.h"
#include "zc_ioctl.h"

#include <atomic>

namespace zc {

/**
 * exchanger - /dev/zc, which exchanges the pages of two ranges where they are
 *
 *               user        landing
 *    before     old         message
 *    after      message     old
 *
 * Mappings stay what they were: nothing to park in between, nothing to count
 * against vm.max_map_count. The module looks at every page it is about to
 * exchange, so /proc need not be read before; where it stops, what lies before
 * is exchanged and what lies behind untouched.
 *
 * The descriptor acts on the memory of the calling process, hence also serves a
 * forked child.
 *
 * Any thread.
 */
class exchanger {
  public:
    /** Opens the device if it is @wanted. */
    explicit exchanger(bool wanted);
    ~exchanger();
    exchanger(const exchanger &) = delete;
    exchanger &operator=(const exchanger &) = delete;

    bool ready() const { return error_ == 0; }
    /** Why it is not: -ECANCELED not wanted, -EPROTO too old a module, or what
     *  open(2) gave. */
    int error() const { return error_; }
    /** The same in a few words, for people. */
    const char *status() const;
    /** ZC_FEATURE_*; 0 if not ready. */
    std::uint64_t features() const { return features_; }

    /** Worth asking now? While a device mirrors the address space, which lasts
     *  as a rule, every exchange is refused: so only now and then. */
    bool usable();

    /** @done bytes from the front were exchanged; @cause: why no more,
     *  ZC_CAUSE_COUNT if it is none that we know. */
    struct result {
        std::size_t done;
        zc_cause cause;
    };

    /** Exchanges @user, whole pages, with what begins at @landing. Goes on
     *  after signals, and tries pages in transit a few times. */
    result exchange(range user, addr_t landing) noexcept;

  private:
    int query();
    result ask(range user, addr_t landing) const noexcept;

    int device_ = -1;
    int error_;
    std::uint64_t features_ = 0;
    std::atomic<std::uint32_t> rest_{0}; /* times more that usable() says no */
};

} // namespace zc

#endif /* ZC_EXCHANGER_H_INCLUDED */
