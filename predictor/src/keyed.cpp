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

constexpr int kManySizes = 3; /* as far as they are counted */

/* Credit of wide keys: where they may overrule, where they are given up. */
constexpr int kMostCredit = 31;
constexpr int kOverruling = 24;
constexpr int kFirstCredit = 16;
constexpr int kNoCredit = 0;

/* After so many repetitions another one teaches nothing about congruence. */
constexpr uint32_t kSurelyConstant = 16;

/* Trust above which an exact key needs no wide ones beside it, and below which it does again. */
constexpr trust kNarrow = trust::of(0.95f);
constexpr trust kNotNarrow = trust::half();

/* The decay of the share of renamed receives, and where it becomes and ceases to be high. */
constexpr uint32_t kAllRenamed = 1 << 16;
constexpr uint32_t kRenamedDecay = 64;
constexpr uint32_t kManyRenamed = kAllRenamed / 4;
constexpr uint32_t kFewRenamed = kAllRenamed / 10;

/* To tell whether two addresses are alike: not 0. */
uint8_t print_of(uint64_t addr)
{
    return static_cast<uint8_t>(mix(5, addr) | 1);
}

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

/* How the memory is shared, in parts of kParts. */
constexpr size_t kParts = 128;
constexpr size_t kSubstreams = 56;
constexpr size_t kWideKeys = 4;
constexpr size_t kShortHistories = 11;
constexpr size_t kHistories = 5;
constexpr size_t kWideHistories = 1; /* of each kind */
constexpr size_t kStream = 26;
constexpr size_t kClaims = 24;
static_assert(kSubstreams + kWideKeys + kShortHistories + kHistories + 2 * kWideHistories +
                  kStream + kClaims ==
              kParts);

static size_t share(size_t max_bytes, size_t parts)
{
    return max_bytes / kParts * parts;
}

keyed::keyed(size_t max_bytes, uint32_t horizon, float min_confidence)
    : zcp(share(max_bytes, kClaims), horizon, min_confidence),
      substreams_(share(max_bytes, kSubstreams)), wide_(share(max_bytes, kWideKeys)),
      histories_(share(max_bytes, kShortHistories), share(max_bytes, kHistories)),
      wide_histories_(share(max_bytes, kWideHistories), share(max_bytes, kWideHistories)),
      stream_(share(max_bytes, kStream))
{
}

/* ---- entries ---- */

substream &keyed::at(uint32_t entry)
{
    return entry < kWide ? substreams_.value_at(entry) : wide_.value_at(entry - kWide);
}

const substream &keyed::at(uint32_t entry) const
{
    return entry < kWide ? substreams_.value_at(entry) : wide_.value_at(entry - kWide);
}

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

/* The same, unless one that may still be in use would have to go. */
uint32_t keyed::insert_spare(const key &key)
{
    const auto pinned = [](const substream &sub) { return sub.unsettled != 0; };
    const substream *sub = substreams_.insert(key, key.hash(), pinned, substreams_.size());
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
    sub.credit = kFirstCredit;
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
    const uint32_t of_any = insert_spare(any);
    if (of_any == kNone) { /* all that is there is in use: of more use than a second size */
        out.exact = insert(exact);
        return out.exact != kNone;
    }
    substream &flow = substreams_.value_at(of_any);
    const uint32_t only = flow.sizes == 1 ? flow.any - 1 : kNone;
    flow.sizes = static_cast<uint8_t>(std::min(flow.sizes + 1, kManySizes)) & kManySizes;
    flow.fresh = static_cast<uint8_t>(flow.fresh == UINT8_MAX ? kDrifting : flow.fresh + 1);
    if (flow.sizes > 1) {
        out.any = of_any;
        out.rough = insert(key::rough(envelope));
        /* The first size was not learned under wider keys, being the only one. */
        if (only != kNone && substreams_.key_at(only).same_flow(exact) &&
            substreams_.key_at(only).sized == sizing::exact) {
            adopt(of_any, only);
            substreams_.value_at(only).sizes = flow.sizes;
            substreams_.value_at(only).any = of_any + 1;
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
        if (flow.sizes == 1) {
            flow.any = out.exact + 1;
            substreams_.neglect(of_any); /* of use only if another size comes, as it seldom does */
        }
    }
    /* One insertion may have replaced another's entry. */
    if (!is(out.any, any))
        out.any = kNone;
    if (!is(out.rough, key::rough(envelope)))
        out.rough = kNone;
    return out.exact != out.rough || out.rough != kNone;
}

uint32_t keyed::find_wide(const key &key, uint64_t hash) const
{
    const substream *sub = wide_.find(key, hash);
    return sub ? wide_.index(sub) + kWide : kNone;
}

/* Where it is noted whether wide keys do better: the one that outlives the others. */
uint32_t keyed::referee(const entries &entries)
{
    return entries.any != kNone ? entries.any : entries.exact;
}

uint32_t keyed::insert_wide(const key &key)
{
    const auto pinned = [](const substream &sub) { return sub.unsettled != 0; };
    const substream *sub = wide_.insert(key, key.hash(), pinned);
    return sub ? wide_.index(sub) + kWide : kNone;
}

void keyed::add_wide(const zcp_envelope_t &envelope, entries &out)
{
    const key sender = key::sender(envelope);
    out.sender = insert_wide(sender);
    out.any_source = insert_wide(key::any_source(envelope));
    /* The second may have replaced the first. */
    if (out.sender != kNone && wide_.key_at(out.sender - kWide) != sender)
        out.sender = kNone;
}

bool keyed::make_entries(const zcp_envelope_t &envelope, entries &out)
{
    out = {};
    const key exact = key::exact(envelope);
    substream *sub = substreams_.touch(exact, exact.hash());
    if (!sub) {
        if (!make_new_size(envelope, out))
            return false;
        const substream &judge = substreams_.value_at(referee(out));
        if (judge.repeats == 0 || judge.credit != kNoCredit)
            add_wide(envelope, out);
        return true;
    }
    out.exact = substreams_.index(sub);
    if (!sub->narrow)
        add_wide(envelope, out);
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
    entries found = {find(exact, exact.hash()), find(rough, rough.hash()), find(any, any.hash()),
                     kNone, kNone};
    if (found.exact == kNone)
        found.exact = found.rough;
    if (found.any != kNone && substreams_.value_at(found.any).sizes == 1)
        found.any = substreams_.value_at(found.any).any - 1;
    if (found.exact == kNone || !substreams_.value_at(found.exact).narrow) {
        const key sender = key::sender(envelope);
        const key any_source = key::any_source(envelope);
        found.sender = find_wide(sender, sender.hash());
        found.any_source = find_wide(any_source, any_source.hash());
    }
    return found;
}

/* ---- answers ---- */

/* Of @sub, which is @entry. */
uint64_t keyed::expected(const substream &sub, uint32_t entry, uint32_t nth) const
{
    if (sub.history == 0)
        return sub.last;
    const histories &histories = histories_of(entry);
    if (!histories.is_of(sub.history, entry))
        return sub.last;
    return histories.ask(sub.history, [&](const auto &one) {
        /* Buffers in turn recur; that all keys together advance evenly would be chance. */
        return entry < kWide ? one.next(nth) : one.recurring(nth);
    });
}

/* Can @sub be asked for one more message, besides @more? */
bool keyed::can_answer(const substream &sub, uint32_t more) const
{
    return sub.repeats != 0 && sub.unsettled + more <= horizon_;
}

/* Which of @entries answers; @more messages are counted besides those unsettled. */
bool keyed::choose(const entries &entries, uint32_t more, keyed_guess &out) const
{
    out.entry = kNone;
    if (entries.exact != kNone) {
        const substream &exact = substreams_.value_at(entries.exact);
        if (can_answer(exact, more)) {
            out = {entries.exact, 0, exact.unsettled + more};
            if (exact.address >= trust::half() && exact.credit < kOverruling) {
                out.addr = expected(exact, out.entry, out.ahead);
                return true;
            }
        }
    }
    return choose_among_wider(entries, more, out);
}

/* The same where the exact one has disappointed, or there is none. */
bool keyed::choose_among_wider(const entries &entries, uint32_t more, keyed_guess &out) const
{
    const auto trust_in = [&](uint32_t entry) { return at(entry).address; };
    for (const uint32_t entry : {entries.rough, entries.any}) {
        if (entry == kNone || entry == out.entry || !can_answer(at(entry), more))
            continue;
        if (out.entry == kNone ||
            (trust_in(out.entry) < trust::half() &&
             trust_in(out.entry).value() + kOverrule < trust_in(entry).value()))
            out.entry = entry;
    }
    for (const uint32_t entry : {entries.sender, entries.any_source}) {
        if (entry == kNone || !can_answer(at(entry), more))
            continue;
        /* Whether messages are received in the order they come must have been seen. */
        if (entry == entries.any_source && at(entry).credit < kOverruling)
            continue;
        if (out.entry == kNone ||
            (at(referee(entries)).credit >= kOverruling && trust_in(out.entry) < trust_in(entry)))
            out.entry = entry;
    }
    if (out.entry == kNone)
        return false;
    out.ahead = at(out.entry).unsettled + more;
    out.addr = expected(at(out.entry), out.entry, out.ahead);
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

/* How many right answers stand behind the trust in an entry. That the last messages all went to one
 * place says little of another flow, until the wide key has known better for others. */
uint32_t keyed::evidence(uint32_t entry) const
{
    return entry < kWide || at(entry).credit >= kOverruling ? at(entry).repeats : 0;
}

bool keyed::foretell_newcomer(uint64_t bytes, newcomers::answer &out) const
{
    return newcomers_.foretell(bytes, std::max(kSureOfClass, min_confidence_), out) &&
           out.confidence >= min_confidence_;
}

void keyed::answer(const zcp_envelope_t &envelope, message &claim, zcp_landing_t &out) noexcept
{
    const entries &entries = claim.flows;
    substream &exact = substreams_.value_at(entries.exact);
    if (entries.any_source != kNone) {
        const substream &sub = at(entries.any_source);
        if (sub.repeats != 0)
            claim.print = print_of(expected(sub, entries.any_source, sub.unsettled));
    }
    keyed_guess guess;
    if (!choose(entries, 0, guess)) {
        newcomers::answer newcomer;
        if (exact.repeats != 0 || !foretell_newcomer(envelope.bytes, newcomer))
            return;
        claim.state = claim_state::answered_class;
        claim.expected = newcomer.like;
        out.addr = newcomer.like % newcomer.modulus;
        out.modulus = newcomer.modulus;
        out.confidence = newcomer.confidence;
        out.ahead = exact.unsettled;
        return;
    }
    const substream &chosen = at(guess.entry);
    if (!exact.answers.begun())
        exact.answers.begin(chosen.address, evidence(guess.entry));
    claim.expected = guess.addr;
    out.confidence = exact.answers.confidence();
    if (out.confidence >= min_confidence_) {
        claim.state = claim_state::answered;
        out.addr = guess.addr;
    } else if (const uint64_t modulus = sure_class(chosen, envelope.bytes)) {
        claim.state = claim_state::answered_class;
        out.addr = guess.addr % modulus;
        out.modulus = modulus;
        out.confidence = class_confidence(exact, chosen, modulus);
    } else {
        claim.state = claim_state::withheld;
        out.confidence = 0;
        return;
    }
    out.ahead = guess.ahead;
}

void keyed::count_unsettled(const entries &entries, int change)
{
    substreams_.value_at(entries.exact).unsettled += change;
    if (entries.rough != kNone && entries.rough != entries.exact)
        substreams_.value_at(entries.rough).unsettled += change;
    if (entries.any != kNone)
        substreams_.value_at(entries.any).unsettled += change;
    if (entries.sender != kNone)
        at(entries.sender).unsettled += change;
    if (entries.any_source != kNone)
        at(entries.any_source).unsettled += change;
}

bool keyed::open(const zcp_envelope_t &envelope, message &claim) noexcept
{
    if (!make_entries(envelope, claim.flows))
        return false;
    count_unsettled(claim.flows, 1);
    return true;
}

void keyed::close(const message &claim) noexcept
{
    count_unsettled(claim.flows, -1);
}

/* ---- learning ---- */

void keyed::learn_varying(substream &sub, uint32_t entry, uint64_t addr)
{
    histories &histories = histories_of(entry);
    if (!histories.is_of(sub.history, entry)) {
        const uint32_t slot = histories.take(entry, sub.history != 0, sub.last, sub.repeats);
        if (slot == 0)
            return; /* until one can be had, the last address has to do */
        sub.history = slot;
    } else if (addr == sub.last && sub.repeats >= history::kDepth) {
        histories.release(sub.history); /* nothing but this address is left in it */
        sub.history = 0;
        return;
    }
    sub.history = histories.add(sub.history, entry, addr);
}

void keyed::learn(substream &sub, uint32_t entry, uint64_t addr)
{
    if (sub.repeats != 0) {
        sub.address.count(expected(sub, entry, 1) == addr);
        if (sub.address > kNarrow) {
            sub.narrow = 1;
            sub.credit = kFirstCredit;
        } else if (sub.address < kNotNarrow && sub.credit != kNoCredit) {
            sub.narrow = 0;
        }
    }
    follow(sub, entry, addr);
}

/* As learn(), but for how far it is to be trusted. */
void keyed::follow(substream &sub, uint32_t entry, uint64_t addr)
{
    if (sub.repeats == 0) {
        sub.address = sub.page = sub.huge_page = trust::half();
        sub.credit = kFirstCredit;
    } else {
        if (addr != sub.last || sub.repeats < kSurelyConstant) {
            sub.page.count(congruent(sub.last, addr));
            sub.huge_page.count((sub.last ^ addr) % kHugePageBytes == 0);
        }
        if (sub.history != 0 || addr != sub.last)
            learn_varying(sub, entry, addr);
    }
    if (addr != sub.last)
        sub.repeats = 0;
    if (sub.repeats != UINT32_MAX)
        sub.repeats++;
    sub.last = addr;
}

/* Up slowly, down quickly. */
void keyed::credit(substream &sub, bool right, bool known)
{
    const int change = right == known ? -!right : right ? 1 : -2;
    sub.credit = static_cast<uint8_t>(std::clamp(sub.credit + change, kNoCredit, kMostCredit)) & 31;
}

/* What a wide key foretold was @right or not: notes whether it knew better than the others. */
void keyed::credit_wide(const entries &entries, uint32_t wide, bool right, uint64_t addr)
{
    substream &judge = substreams_.value_at(referee(entries));
    const bool known = judge.repeats != 0 && expected(judge, referee(entries), 1) == addr;
    credit(at(wide), right, known);
    if (judge.repeats == 0)
        return;
    credit(judge, right, known);
    if (judge.credit == kNoCredit)
        substreams_.value_at(entries.exact).narrow = 1;
}

void keyed::learn_wide(const entries &entries, const zcp_receive_t &receive)
{
    substream &exact = substreams_.value_at(entries.exact);
    const bool stranger =
        exact.repeats == 0 && (entries.any == kNone || at(entries.any).repeats == 0);
    if (stranger)
        newcomers_.learn(receive.envelope.bytes, receive.addr);
    if (entries.sender != kNone) {
        substream &sender = at(entries.sender);
        if (stranger && sender.repeats != 0)
            renamed_ += kAllRenamed / kRenamedDecay;
        if (sender.repeats != 0)
            credit_wide(entries, entries.sender,
                        expected(sender, entries.sender, 1) == receive.addr, receive.addr);
        learn(sender, entries.sender, receive.addr);
    }
    if (entries.any_source != kNone)
        follow(at(entries.any_source), entries.any_source, receive.addr);
}

void keyed::learn(const entries &entries, const zcp_receive_t &receive)
{
    if (entries.exact != kNone && !substreams_.value_at(entries.exact).narrow)
        learn_wide(entries, receive);
    if (renamed_ != 0) {
        renamed_ -= (renamed_ + kRenamedDecay - 1) / kRenamedDecay;
        nameless_ = nameless_ ? renamed_ > kFewRenamed : renamed_ > kManyRenamed;
    }
    const bool new_rough =
        entries.rough != kNone && substreams_.value_at(entries.rough).repeats == 0;
    if (entries.exact != kNone)
        learn(substreams_.value_at(entries.exact), entries.exact, receive.addr);
    if (entries.rough != kNone && entries.rough != entries.exact)
        learn(substreams_.value_at(entries.rough), entries.rough, receive.addr);
    if (entries.any != kNone) {
        substream &any = substreams_.value_at(entries.any);
        learn(any, entries.any, receive.addr);
        /* Where no size is right, a size not seen before has no credit. */
        if (new_rough) {
            trust &rough = substreams_.value_at(entries.rough).address;
            rough = std::min(rough, any.address);
        }
    }
    stream_.learn(receive, nameless_);
}

void keyed::learn(const zcp_receive_t &receive) noexcept
{
    entries entries;
    make_entries(receive.envelope, entries);
    learn(entries, receive);
}

void keyed::settle(const message &claim, uint64_t addr) noexcept
{
    substream &exact = substreams_.value_at(claim.flows.exact);
    /* Withheld guesses count too: that is how a silenced envelope is heard again. */
    if (claim.state != claim_state::unknown && exact.answers.begun())
        exact.answers.count(claim.expected == addr);
    if (claim.print != 0) {
        const bool right = print_of(addr) == claim.print;
        at(claim.flows.any_source).address.count(right);
        credit_wide(claim.flows, claim.flows.any_source, right, addr);
    }
    zcp_receive_t received = {substreams_.key_at(claim.flows.exact).envelope(), addr};
    received.envelope.bytes = claim.bytes;
    close(claim);
    learn(claim.flows, received);
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
        const key key = nameless_ ? key::sender(out[i].envelope) : key::exact(out[i].envelope);
        const uint64_t hash = key.hash();
        const uint32_t nth = occurrences.count(hash);
        if (how == stream::source::past) {
            const uint32_t entry = nameless_ ? find_wide(key, hash) : find(key, hash);
            if (entry != kNone && at(entry).repeats != 0)
                walk.correct(out[i].addr = expected(at(entry), entry, nth));
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
        newcomers::answer newcomer;
        if (out.unsettled >= horizon_) {
            out.cause = ZCP_CAUSE_BEYOND;
        } else if ((!exact || exact->repeats == 0) && foretell_newcomer(envelope.bytes, newcomer)) {
            out.cause = ZCP_CAUSE_CLASS;
            out.guess = newcomer.like % newcomer.modulus;
            out.modulus = newcomer.modulus;
            out.confidence = newcomer.confidence;
        }
        return;
    }
    const substream &chosen = at(guess.entry);
    const histories &histories = histories_of(guess.entry);
    bool advances = false;
    uint32_t period = 1;
    if (histories.is_of(chosen.history, guess.entry))
        histories.ask(chosen.history, [&](const auto &one) {
            advances = one.strides();
            period = one.period();
        });
    score answers = exact ? exact->answers : score();
    if (!answers.begun())
        answers.begin(chosen.address, evidence(guess.entry));
    out.guess = guess.addr;
    out.confidence = answers.confidence();
    if (out.confidence < min_confidence_) {
        out.modulus = sure_class(chosen, envelope.bytes);
        out.cause = out.modulus ? ZCP_CAUSE_CLASS : ZCP_CAUSE_UNSURE;
        if (out.modulus) {
            out.guess %= out.modulus;
            out.confidence = class_confidence(exact ? *exact : chosen, chosen, out.modulus);
        }
    } else if (guess.entry >= kWide) {
        out.cause = ZCP_CAUSE_STREAM;
    } else if (!is(guess.entry, key::exact(envelope))) {
        out.cause = ZCP_CAUSE_ANY_SIZE;
    } else if (advances) {
        out.cause = ZCP_CAUSE_STRIDE;
    } else if (period > 1) {
        out.cause = ZCP_CAUSE_PERIOD;
        out.period = period;
    } else {
        out.cause = ZCP_CAUSE_CONSTANT;
    }
}

size_t keyed::bytes() const noexcept
{
    return sizeof(*this) - sizeof(zcp) + substreams_.bytes() + wide_.bytes() + histories_.bytes() +
           wide_histories_.bytes() + stream_.bytes();
}

} // namespace zc::predict
