/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyed.h"

#include <algorithm>

namespace zc::predict {

/* Trust moves by a quarter towards each outcome: three wrong answers in a row
 * bring full trust below one half. */
static constexpr float kTrustStep = 0.25f;
static constexpr float kTrustNew = 0.5f;
/* How much more reliable the substream of any size must be to overrule an exact
 * one that has disappointed. */
static constexpr float kOverrule = 0.25f;

keyed::keyed(size_t max_bytes)
    : substreams_(max_bytes * 3 / 8), histories_(max_bytes / 4), stream_(max_bytes * 3 / 8)
{
}

uint64_t keyed::expected(const key &key, uint64_t hash, const substream &sub, uint32_t nth) const
{
    const history *history = sub.varies ? histories_.find(key, hash) : nullptr;
    return history ? history->next(nth) : sub.last;
}

void keyed::learn_varying(const key &key, uint64_t hash, substream &sub, uint64_t addr)
{
    history *history = histories_.touch(key, hash);
    if (!history) {
        history = histories_.insert(key, hash);
        history->fill(sub.last, sub.repeats);
    }
    history->add(addr);
    sub.varies = !history->constant();
    if (!sub.varies)
        histories_.erase(key, hash);
}

void keyed::learn_key(const key &key, uint64_t hash, substream &sub, uint64_t addr)
{
    if (sub.repeats == 0) {
        sub.trust = kTrustNew;
    } else {
        const bool right = expected(key, hash, sub, 1) == addr;
        sub.trust += kTrustStep * ((right ? 1.0f : 0.0f) - sub.trust);
        if (sub.keeps_history && (sub.varies || addr != sub.last))
            learn_varying(key, hash, sub, addr);
    }
    if (addr != sub.last)
        sub.repeats = 0;
    if (sub.repeats != UINT32_MAX)
        sub.repeats++;
    sub.last = addr;
}

void keyed::learn(const zcp_receive_t &receive) noexcept
{
    const key exact = key::exact(receive.envelope);
    const uint64_t exact_hash = exact.hash();
    substream &sized = *substreams_.insert(exact, exact_hash);
    const bool new_size = sized.repeats == 0;
    sized.keeps_history = 1;
    learn_key(exact, exact_hash, sized, receive.addr);

    /* From here on the reference above may be to a replaced entry. */
    const key any_size = key::any_size(receive.envelope);
    const uint64_t any_hash = any_size.hash();
    substream &any = *substreams_.insert(any_size, any_hash);
    if (new_size && any.repeats != 0)
        any.keeps_history = 1;
    learn_key(any_size, any_hash, any, receive.addr);

    stream_.learn(receive);
}

bool keyed::locate(const query &q, guess &out) const noexcept
{
    const key exact = key::exact(q.envelope);
    const uint64_t exact_hash = exact.hash();
    const substream *sized = substreams_.find(exact, exact_hash);

    const key any_size = key::any_size(q.envelope);
    const uint64_t any_hash = any_size.hash();
    const substream *any = substreams_.find(any_size, any_hash);

    if (sized && (!any || sized->trust >= kTrustNew || sized->trust + kOverrule >= any->trust)) {
        out = {expected(exact, exact_hash, *sized, q.nth), q.nth, sized->trust};
        return true;
    }
    if (any && q.nth_any_size <= q.scratch.size()) {
        out = {expected(any_size, any_hash, *any, q.nth_any_size), q.nth_any_size, any->trust};
        return true;
    }
    return false;
}

uint32_t keyed::next(std::span<zcp_receive_t> out) const noexcept
{
    return stream_.next(out);
}

size_t keyed::bytes() const noexcept
{
    return sizeof(*this) + substreams_.bytes() + histories_.bytes() + stream_.bytes();
}

} // namespace zc::predict
