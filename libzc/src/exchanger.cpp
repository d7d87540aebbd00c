/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchanger.h"

#include "kernel.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace zc {

namespace {

/* Attempts in a row that exchange nothing before a page in transit is given
 * up; the module has made several of its own by then. */
constexpr int kAttempts = 4;

/* A call in vain takes a microsecond; deliveries until the next one. */
constexpr std::uint32_t kRest = 1024;

} // namespace

exchanger::exchanger(bool wanted) : error_(-ECANCELED)
{
    if (!wanted)
        return;
    int device = kernel.open_device();
    if (device < 0) {
        error_ = device;
        return;
    }
    device_ = device;
    error_ = query();
    if (error_) {
        close(device_);
        device_ = -1;
    }
}

exchanger::~exchanger()
{
    if (device_ >= 0)
        close(device_);
}

/* Whatever answers wrongly is not the module, or not one that we know. */
int exchanger::query()
{
    zc_features f{};
    f.size = sizeof(f);
    if (kernel.control(device_, ZC_IOC_FEATURES, &f) != 0)
        return -EPROTO;
    if (!(f.features & ZC_FEATURE_EXCHANGE) || f.page_size != kPage)
        return -EPROTO;
    features_ = f.features;
    if (f.huge_size != kHuge)
        features_ &= ~ZC_FEATURE_HUGE;
    return 0;
}

const char *exchanger::status() const
{
    switch (error_) {
    case 0:
        return "ready";
    case -ECANCELED:
        return "switched off";
    case -ENOENT:
        return "no /dev/zc";
    case -ENXIO:
    case -ENODEV:
        return "no module behind /dev/zc";
    case -EACCES:
    case -EPERM:
        return "permission denied";
    case -EPROTO:
        return "old ABI";
    default:
        return std::strerror(-error_);
    }
}

bool exchanger::usable()
{
    if (!ready())
        return false;
    std::uint32_t left = rest_.load(std::memory_order_relaxed);
    while (left > 0)
        if (rest_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed))
            return false;
    return true;
}

/** One call. */
exchanger::result exchanger::ask(range user, addr_t landing) const noexcept
{
    zc_range pair{};
    pair.a = user.begin;
    pair.b = landing;
    pair.length = user.size();
    zc_exchange call{};
    call.size = sizeof(call);
    call.range_size = sizeof(pair);
    call.count = 1;
    call.ranges = as_address(&pair);

    int error = kernel.control(device_, ZC_IOC_EXCHANGE, &call);
    std::size_t done = std::min<std::size_t>(pair.done, user.size());
    if (pair.cause == ZC_CAUSE_NONE && done == user.size())
        return {done, ZC_CAUSE_NONE};
    if (error == -EINTR)
        return {done, ZC_CAUSE_INTERRUPTED};
    bool known = pair.cause > ZC_CAUSE_NONE && pair.cause < ZC_CAUSE_COUNT;
    return {done, known ? static_cast<zc_cause>(pair.cause) : ZC_CAUSE_COUNT};
}

/* Never from the beginning again: that would exchange everything back. */
exchanger::result exchanger::exchange(range user, addr_t landing) noexcept
{
    std::size_t done = 0;
    for (int attempts = 0;;) {
        result r = ask({user.begin + done, user.end}, landing + done);
        done += r.done;
        attempts = r.done ? 0 : attempts + 1;
        bool passing = r.cause == ZC_CAUSE_RACED || r.cause == ZC_CAUSE_INTERRUPTED;
        if (!passing || attempts == kAttempts) {
            if (r.cause == ZC_CAUSE_NOTIFIER)
                rest_.store(kRest, std::memory_order_relaxed);
            return {done, r.cause};
        }
    }
}

} // namespace zc
