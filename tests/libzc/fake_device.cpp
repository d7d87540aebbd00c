/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_device.h"

#include "kernel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace zc::test {

fake_device *fake_device::installed = nullptr;

fake_device::fake_device()
    : features{sizeof(zc_features), ZC_CAUSE_COUNT, ZC_FEATURE_EXCHANGE | ZC_FEATURE_HUGE, kPage,
               kHuge}
{
    installed = this;
    kernel.open_device = [] { return installed->open(); };
    kernel.control = [](int, unsigned long request, void *argument) {
        return installed->control(request, argument);
    };
}

fake_device::~fake_device()
{
    kernel.open_device = kernel_calls_real.open_device;
    kernel.control = kernel_calls_real.control;
    installed = nullptr;
}

void fake_device::refuse(range r, zc_cause cause, unsigned times)
{
    std::lock_guard lock(mutex_);
    for (addr_t page = r.begin; page < r.end; page += kPage)
        refusals_[page] = {cause, times};
}

void fake_device::refuse_some(unsigned probability, unsigned seed)
{
    std::lock_guard lock(mutex_);
    probability_ = probability;
    random_ = seed + 1;
}

void fake_device::refuse_nothing()
{
    std::lock_guard lock(mutex_);
    refusals_.clear();
    probability_ = 0;
}

std::vector<range> fake_device::calls() const
{
    std::lock_guard lock(mutex_);
    return calls_;
}

void fake_device::forget_calls()
{
    std::lock_guard lock(mutex_);
    calls_.clear();
}

unsigned fake_device::wrong_arguments() const
{
    std::lock_guard lock(mutex_);
    return wrong_;
}

/* A descriptor that may be closed like any other. */
int fake_device::open() const
{
    return open_error ? open_error : ::open("/dev/null", O_RDWR | O_CLOEXEC);
}

int fake_device::control(unsigned long request, void *argument)
{
    switch (request) {
    case ZC_IOC_FEATURES:
        return tell_features(*static_cast<zc_features *>(argument));
    case ZC_IOC_EXCHANGE:
        return exchange(*static_cast<zc_exchange *>(argument));
    default:
        return -ENOTTY;
    }
}

int fake_device::tell_features(zc_features &out) const
{
    if (out.size != sizeof(out))
        return -EINVAL;
    if (!features_error)
        out = features;
    return features_error;
}

int fake_device::exchange(zc_exchange &call)
{
    if (call_error)
        return call_error;
    if (call.size != sizeof(call) || call.range_size != sizeof(zc_range) || call.flags) {
        std::lock_guard lock(mutex_);
        wrong_++;
        return -EINVAL;
    }
    call.done = 0;
    call.cause = ZC_CAUSE_NONE;
    auto *pairs = static_cast<zc_range *>(as_pointer(call.ranges));
    for (call.stopped = 0; call.stopped < call.count; call.stopped++) {
        zc_range &pair = pairs[call.stopped];
        exchange_one(pair);
        call.done += pair.done;
        call.cause = pair.cause;
        if (pair.cause)
            break;
    }
    switch (call.cause) {
    case ZC_CAUSE_NONE:
        return 0;
    case ZC_CAUSE_INTERRUPTED:
        return -EINTR;
    case ZC_CAUSE_RACED:
        return -EAGAIN;
    default:
        return -EBUSY; /* the module has one for each; no caller may depend on it */
    }
}

void fake_device::exchange_one(zc_range &pair)
{
    range a = range_at(pair.a, pair.length), b = range_at(pair.b, pair.length);
    {
        std::lock_guard lock(mutex_);
        calls_.push_back(a);
        bool wrong =
            (pair.a | pair.b | pair.length) % kPage || pair.flags || !intersection(a, b).empty();
        wrong_ += wrong;
    }
    pair.cause = ZC_CAUSE_NONE;
    for (pair.done = 0; pair.done < pair.length; pair.done += kPage) {
        if (stride_ && pair.done == stride_ * kPage)
            pair.cause = ZC_CAUSE_INTERRUPTED;
        else
            pair.cause = verdict(a.begin + pair.done, b.begin + pair.done);
        if (pair.cause)
            return;
        exchange_page(a.begin + pair.done, b.begin + pair.done);
    }
}

zc_cause fake_device::verdict(addr_t a, addr_t b)
{
    constexpr std::array kAny = {ZC_CAUSE_COW,    ZC_CAUSE_PINNED,   ZC_CAUSE_RACED,
                                 ZC_CAUSE_SHARED, ZC_CAUSE_POLICY,   ZC_CAUSE_PAGE_SIZE,
                                 ZC_CAUSE_LOCKED, ZC_CAUSE_POISONED, ZC_CAUSE_NO_MEMORY};
    std::lock_guard lock(mutex_);
    for (addr_t page : {a, b}) {
        auto found = refusals_.find(page);
        if (found == refusals_.end() || found->second.times == 0)
            continue;
        found->second.times--;
        return found->second.cause;
    }
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    if ((random_ >> 33) % 1024 < probability_)
        return kAny[(random_ >> 50) % kAny.size()];
    return ZC_CAUSE_NONE;
}

void fake_device::exchange_page(addr_t a, addr_t b)
{
    unsigned char resident = 0;
    bool absent = mincore(as_pointer(a), kPage, &resident) == 0 && !(resident & 1);
    std::array<char, kPage> aside;
    std::memcpy(aside.data(), as_pointer(a), kPage);
    std::memcpy(as_pointer(a), as_pointer(b), kPage);
    std::memcpy(as_pointer(b), aside.data(), kPage);
    if (absent)
        (void)madvise(as_pointer(b), kPage, MADV_DONTNEED);
}

} // namespace zc::test
