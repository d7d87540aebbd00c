/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyed.h"

#include <algorithm>
#include <array>

#include "predictor.h"

namespace zc::predict {

namespace {

/* How much more reliable a less exact substream must be to overrule an exact one
 * that has disappointed. */
constexpr float kOverrule = 0.25f;
/* A class is answered only when it is rather sure: it is never far from a guess. */
constexpr float kSureOfClass = 0.75f;
/* After so many unknown sizes in a row exact entries are made for few of them. */
constexpr uint8_t kDrifting = 16;
constexpr uint8_t kFewOf = 8;

/* After so many repetitions another one teaches nothing about congruence. */
constexpr uint32_t kSurelyConstant = 16;

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
/* From here on landing buffers are congruent modulo huge pages. */
constexpr uint64_t kHugeMessage = uint64_t{4} << 20;

/** How often each key was met on the way through the horizon. */
class tally {
  public:
    /** 1 the first time, 2 the second, … */
    uint32_t count(uint64_t hash)
    {
        size_t i = hash % kSlots;
        while (counts_[i] != 0 && hashes_[i] != hash)
            i = (i + 1) % kSlots;
        hashes_[i] = hash;
        return ++counts_[i];
    }

  private:
    static constexpr size_t kSlots = 1024; /* twice the longest horizon */
    std::array<uint64_t, kSlots> hashes_;
    std::array<uint16_t, kSlots> counts_{};
};

} // namespace

/* How the memory is shared. */
static size_t for_substreams(size_t max_bytes)
{
    return max_bytes / 32 * 15;
}
static size_t for_histories(size_t max_bytes)
{
    return max_bytes / 32 * 4;
}
static size_t for_stream(size_t max_bytes)
{
    return max_bytes / 32 * 7;
}
static size_t for_claims(size_t max_bytes)
{
    return max_bytes / 32 * 6;
}

keyed::keyed(size_t max_bytes, uint32_t horizon, float min_confidence)
    : zcp(for_claims(max_bytes), horizon, min_confidence), substreams_(for_substreams(max_bytes)),
      histories_(for_histories(max_bytes)), stream_(for_stream(max_bytes))
{
}

/* ---- entries ---- */

uint32_t keyed::find(const key &key, uint64_t hash) const
{
    const substream *sub = substreams_.find(key, hash);
    return sub ? substreams_.index(sub) : kNone;
}

uint32_t keyed::insert(const key &key)
{
    const auto pinned = [](const substream &sub) { return sub.unsettled != 0; };
    const substream *sub = substreams_.insert(key, key.hash(), pinned);
    return sub ? substreams_.index(sub) : kNone;
}

/* Entries are replaced; what leads to one may lead to another by now. */
bool keyed::is(uint32_t entry, const key &key) const
{
    return entry != kNone && substreams_.key_at(entry) == key;
}

/* A new entry of a wider key knows what the narrower one knew. */
void keyed::adopt(uint32_t heir, uint32_t from)
{
    const substream &known = substreams_.value_at(from);
    substream &sub = substreams_.value_at(heir);
    if (sub.repeats != 0 || known.repeats == 0)
        return;
    sub.last = known.last;
    sub.repeats = 1;
    sub.address = known.address;
    sub.page = known.page;
    sub.huge_page = known.huge_page;
}

void keyed::link_rough(const zcp_envelope_t &envelope, uint32_t exact, entries &out)
{
    const key rough = key::rough(envelope);
    substream &sub = substreams_.value_at(exact);
    out.rough = sub.rough - 1;
    if (is(out.rough, rough)) {
        substreams_.use(out.rough);
        return;
    }
    out.rough = insert(rough);
    sub.rough = out.rough + 1;
    if (out.rough != kNone)
        adopt(out.rough, exact);
}

/* A size not seen before, or forgotten. */
bool keyed::make_new_size(const zcp_envelope_t &envelope, entries &out)
{
    const key exact = key::exact(envelope);
    const key any = key::any_size(envelope);
    const uint32_t of_any = insert(any);
    if (of_any == kNone)
        return false;
    substream &flow = substreams_.value_at(of_any);
    const uint32_t only = flow.sizes == 1 ? flow.any - 1 : kNone;
    flow.sizes = static_cast<uint8_t>(std::min(flow.sizes + 1, UINT8_MAX));
    flow.fresh = static_cast<uint8_t>(flow.fresh == UINT8_MAX ? kDrifting : flow.fresh + 1);
    if (flow.sizes == 1)
        substreams_.neglect(of_any); /* of use only if another size comes, as it seldom does */
    if (flow.sizes > 1) {
        out.any = of_any;
        out.rough = insert(key::rough(envelope));
        /* The first size was not learned under wider keys, being the only one. */
        if (only != kNone && substreams_.key_at(only).same_flow(exact) &&
            substreams_.key_at(only).sized == sizing::exact) {
            adopt(of_any, only);
            substreams_.value_at(only).sizes = flow.sizes;
            if (out.rough != kNone &&
                rough_size(substreams_.key_at(only).bytes) == rough_size(envelope.bytes))
                adopt(out.rough, only);
        }
    }
    if (out.rough != kNone && flow.fresh > kDrifting && flow.fresh % kFewOf != 0)
        out.exact = out.rough;
    else
        out.exact = insert(exact);
    if (out.exact == kNone)
        return false;
    if (out.exact != out.rough && is(of_any, any)) {
        substreams_.value_at(out.exact).any = of_any + 1;
        substreams_.value_at(out.exact).rough = out.rough + 1;
        substreams_.value_at(out.exact).sizes = flow.sizes;
        if (flow.sizes == 1)
            flow.any = out.exact + 1;
    }
    /* One insertion may have replaced another's entry. */
    if (!is(out.any, any))
        out.any = kNone;
    if (!is(out.rough, key::rough(envelope)))
        out.rough = kNone;
    return out.exact != out.rough || out.rough != kNone;
}

bool keyed::make_entries(const zcp_envelope_t &envelope, entries &out)
{
    out = {kNone, kNone, kNone};
    const key exact = key::exact(envelope);
    substream *sub = substreams_.touch(exact, exact.hash());
    if (!sub)
        return make_new_size(envelope, out);
    out.exact = substreams_.index(sub);
    const uint32_t any = sub->any - 1;
    if (sub->sizes < 2 || !is(any, key::any_size(envelope)))
        return true;
    out.any = any;
    substreams_.use(any);
    substreams_.value_at(any).fresh = 0;
    link_rough(envelope, out.exact, out);
    if (!is(out.any, key::any_size(envelope)))
        out.any = kNone;
    return true;
}

/* The same without making any. */
entries keyed::known_entries(const zcp_envelope_t &envelope) const
{
    const key exact = key::exact(envelope);
    const key rough = key::rough(envelope);
    const key any = key::any_size(envelope);
    entries found = {find(exact, exact.hash()), find(rough, rough.hash()), find(any, any.hash())};
    if (found.exact == kNone)
        found.exact = found.rough;
    if (found.any != kNone && substreams_.value_at(found.any).sizes == 1)
        found.any = substreams_.value_at(found.any).any - 1;
    return found;
}

/* ---- answers ---- */

uint64_t keyed::expected(uint32_t entry, uint32_t nth) const
{
    const substream &sub = substreams_.value_at(entry);
    const history *history = histories_.find(sub.history, entry);
    return history ? history->next(nth) : sub.last;
}

/* Which of @entries answers; @more messages are counted besides those unsettled. */
bool keyed::choose(const entries &entries, uint32_t more, keyed_guess &out) const
{
    const auto can = [&](uint32_t entry) {
        const substream &sub = substreams_.value_at(entry);
        return sub.repeats != 0 && sub.unsettled + more <= horizon_;
    };
    out.entry = entries.exact != kNone && can(entries.exact) ? entries.exact : kNone;
    for (const uint32_t entry : {entries.rough, entries.any}) {
        if (entry == kNone || entry == out.entry || !can(entry))
            continue;
        const substream &sub = substreams_.value_at(entry);
        if (out.entry != kNone) {
            const float best = substreams_.value_at(out.entry).address.value();
            if (best >= 0.5f || best + kOverrule >= sub.address.value())
                continue;
        }
        out.entry = entry;
    }
    if (out.entry == kNone)
        return false;
    out.ahead = substreams_.value_at(out.entry).unsettled + more;
    out.addr = expected(out.entry, out.ahead);
    return true;
}

/* The modulus of the class that is nearly always that of the last address; 0: none is. */
uint32_t keyed::sure_class(const substream &sub, uint64_t bytes) const
{
    const float enough = std::max(kSureOfClass, min_confidence_);
    if (bytes >= kHugeMessage && sub.huge_page.value() >= enough)
        return kHugePageBytes;
    return sub.page.value() >= enough ? kPageBytes : 0;
}

static float class_confidence(const substream &exact, const substream &chosen, uint64_t modulus)
{
    const trust trust = modulus == kHugePageBytes ? chosen.huge_page : chosen.page;
    return exact.answers.confidence(trust.value());
}

void keyed::answer(const zcp_envelope_t &envelope, message &claim, zcp_landing_t &out) noexcept
{
    keyed_guess guess;
    if (!choose({claim.flows[0], claim.flows[1], claim.flows[2]}, 0, guess))
        return;
    const substream &chosen = substreams_.value_at(guess.entry);
    substream &exact = substreams_.value_at(claim.flows[0]);
    if (!exact.answers.begun())
        exact.answers.begin(chosen.address, chosen.repeats);
    claim.expected = guess.addr;
    out.confidence = exact.answers.confidence();
    if (out.confidence >= min_confidence_) {
        claim.state = claim_state::answered;
        out.addr = guess.addr;
    } else if ((claim.modulus = sure_class(chosen, envelope.bytes)) != 0) {
        claim.state = claim_state::answered_class;
        out.addr = guess.addr % claim.modulus;
        out.modulus = claim.modulus;
        out.confidence = class_confidence(exact, chosen, claim.modulus);
    } else {
        claim.state = claim_state::withheld;
        out.confidence = 0;
        return;
    }
    out.ahead = guess.ahead;
}

bool keyed::open(const zcp_envelope_t &envelope, message &claim) noexcept
{
    entries entries;
    if (!make_entries(envelope, entries))
        return false;
    claim.flows = {entries.exact, entries.rough, entries.any};
    for (const uint32_t entry : claim.flows) {
        if (entry != kNone)
            substreams_.value_at(entry).unsettled++;
    }
    return true;
}

void keyed::close(const message &claim) noexcept
{
    for (const uint32_t entry : claim.flows) {
        if (entry != kNone)
            substreams_.value_at(entry).unsettled--;
    }
}

/* ---- learning ---- */

void keyed::learn_varying(uint32_t entry, uint64_t addr)
{
    substream &sub = substreams_.value_at(entry);
    history *history = histories_.touch(sub.history, entry);
    if (history && addr == sub.last && sub.repeats >= history::kDepth) {
        histories_.release(sub.history); /* nothing but this address is left in it */
        sub.history = 0;
        return;
    }
    if (!history) {
        const uint32_t slot = histories_.take(entry, sub.history != 0);
        history = histories_.touch(slot, entry);
        if (!history)
            return; /* until one can be had, the last address has to do */
        sub.history = slot;
        history->fill(sub.last, sub.repeats);
    }
    history->add(addr);
}

void keyed::learn(uint32_t entry, uint64_t addr)
{
    substream &sub = substreams_.value_at(entry);
    if (sub.repeats == 0) {
        sub.address = sub.page = sub.huge_page = trust::half();
    } else {
        sub.address.count(expected(entry, 1) == addr);
        if (addr != sub.last || sub.repeats < kSurelyConstant) {
            sub.page.count(congruent(sub.last, addr));
            sub.huge_page.count((sub.last ^ addr) % kHugePageBytes == 0);
        }
        if (sub.history != 0 || addr != sub.last)
            learn_varying(entry, addr);
    }
    if (addr != sub.last)
        sub.repeats = 0;
    if (sub.repeats != UINT32_MAX)
        sub.repeats++;
    sub.last = addr;
}

void keyed::learn(const entries &entries, const zcp_receive_t &receive)
{
    if (entries.exact != kNone)
        learn(entries.exact, receive.addr);
    if (entries.rough != kNone && entries.rough != entries.exact)
        learn(entries.rough, receive.addr);
    if (entries.any != kNone)
        learn(entries.any, receive.addr);
    stream_.learn(receive);
}

void keyed::learn(const zcp_receive_t &receive) noexcept
{
    entries entries;
    make_entries(receive.envelope, entries);
    learn(entries, receive);
}

void keyed::settle(const message &claim, uint64_t addr) noexcept
{
    substream &exact = substreams_.value_at(claim.flows[0]);
    /* Withheld guesses count too: that is how a silenced envelope is heard again. */
    if (claim.state != claim_state::unknown)
        exact.answers.count(claim.expected == addr);
    zcp_receive_t received = {substreams_.key_at(claim.flows[0]).envelope(), addr};
    received.envelope.bytes = claim.bytes;
    close(claim);
    learn({claim.flows[0], claim.flows[1], claim.flows[2]}, received);
}

/* ---- the stream ---- */

uint32_t keyed::next(std::span<zcp_receive_t> out) const noexcept
{
    out = out.first(std::min<size_t>(out.size(), horizon_));
    tally occurrences;
    stream::walk walk(stream_);
    for (uint32_t i = 0; i < out.size(); i++) {
        const stream::source how = walk.step(out[i]);
        if (how == stream::source::none)
            return i;
        const key exact = key::exact(out[i].envelope);
        const uint64_t hash = exact.hash();
        const uint32_t nth = occurrences.count(hash);
        if (how == stream::source::past) {
            const uint32_t entry = find(exact, hash);
            if (entry != kNone && substreams_.value_at(entry).repeats != 0)
                walk.correct(out[i].addr = expected(entry, nth));
        }
    }
    return static_cast<uint32_t>(out.size());
}

/* ---- explanation ---- */

void keyed::explain(const zcp_envelope_t &envelope, zcp_explanation_t &out) const noexcept
{
    const entries entries = known_entries(envelope);
    const substream *exact =
        entries.exact == kNone ? nullptr : &substreams_.value_at(entries.exact);
    out.unsettled = exact ? exact->unsettled : 0;
    keyed_guess guess;
    if (!choose(entries, 1, guess)) {
        out.cause = out.unsettled >= horizon_ ? ZCP_CAUSE_BEYOND : ZCP_CAUSE_NONE;
        return;
    }
    const substream &chosen = substreams_.value_at(guess.entry);
    const history *history = histories_.find(chosen.history, guess.entry);
    score answers = exact ? exact->answers : score();
    if (!answers.begun())
        answers.begin(chosen.address, chosen.repeats);
    out.guess = guess.addr;
    out.confidence = answers.confidence();
    if (out.confidence < min_confidence_) {
        out.modulus = sure_class(chosen, envelope.bytes);
        out.cause = out.modulus ? ZCP_CAUSE_CLASS : ZCP_CAUSE_UNSURE;
        if (out.modulus) {
            out.guess %= out.modulus;
            out.confidence = class_confidence(exact ? *exact : chosen, chosen, out.modulus);
        }
    } else if (!is(guess.entry, key::exact(envelope))) {
        out.cause = ZCP_CAUSE_ANY_SIZE;
    } else if (history && history->strides()) {
        out.cause = ZCP_CAUSE_STRIDE;
    } else if (history && history->period() > 1) {
        out.cause = ZCP_CAUSE_PERIOD;
        out.period = history->period();
    } else {
        out.cause = ZCP_CAUSE_CONSTANT;
    }
}

size_t keyed::bytes() const noexcept
{
    return sizeof(*this) - sizeof(zcp) + substreams_.bytes() + histories_.bytes() + stream_.bytes();
}

} // namespace zc::predict
