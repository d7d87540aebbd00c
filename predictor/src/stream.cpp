/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include <algorithm>
#include <bit>

#include "hash.h"
#include "history.h"

namespace zc::predict {

static constexpr uint64_t kBase = 0x9e3779b97f4a7c15u;   /* of the rolling hashes; odd */
static constexpr uint64_t kSpread = 0xd6e8feb86659fd93u; /* brings all bits to the top ones */
static constexpr uint32_t kLongest = 1024;               /* longer suffixes count as this long */

static constexpr uint32_t kLost = 64;
static constexpr uint32_t kSeldom = 8;
static constexpr size_t kEntriesPerLoop = 4;
static constexpr size_t kRounds = 12; /* looked back on for sizes */

static constexpr uint64_t power(uint64_t base, uint32_t exponent)
{
    uint64_t result = 1;
    while (exponent-- > 0)
        result *= base;
    return result;
}

static uint32_t shape_hash(const zcp_envelope_t &e, bool nameless)
{
    const uint64_t match = nameless ? 0 : (uint64_t{e.comm} << 32) | static_cast<uint32_t>(e.tag);
    const uint64_t source = uint64_t{static_cast<uint32_t>(e.source)} << 32;
    return static_cast<uint32_t>(mix(match * 0xd1342543de82ef95u, source | rough_size(e.bytes)) >>
                                 32);
}

/* Does @b begin where @a ends? */
static bool side_by_side(const zcp_receive_t &a, const zcp_receive_t &b)
{
    return a.envelope.comm == b.envelope.comm && a.envelope.tag == b.envelope.tag &&
           a.addr + a.envelope.bytes == b.addr;
}

/* The largest power of two of ring entries that fits. */
static size_t entries_for(size_t max_bytes, size_t entry_bytes, size_t most)
{
    return std::min(std::bit_floor(std::max<size_t>(max_bytes / entry_bytes, 64)), most);
}

stream::stream(size_t max_bytes)
    : mask_(entries_for(max_bytes,
                        sizeof(zcp_receive_t) + sizeof(uint32_t) +
                            kOrders.size() * sizeof(uint16_t) + sizeof(loop_end) / kEntriesPerLoop,
                        kMaxEntries) -
            1),
      shift_(64 - static_cast<uint32_t>(std::bit_width(mask_))), ring_(mask_ + 1),
      hashes_(mask_ + 1), loops_((mask_ + 1) / kEntriesPerLoop),
      heads_(kOrders.size() * (mask_ + 1))
{
}

uint16_t &stream::head(size_t order)
{
    return heads_[order * (mask_ + 1) + (suffix_[order] * kSpread >> shift_)];
}

/* How many receives before @after agree with the last ones, up to kLongest. */
uint32_t stream::common_suffix(position after) const
{
    uint32_t length = 0;
    while (length < kLongest && held(after - 1 - length) &&
           hashes_[slot(after - 1 - length)] == hashes_[slot(now_ - length)])
        length++;
    return length;
}

void stream::roll(uint32_t hash)
{
    static constexpr std::array<uint64_t, kOrders.size()> kLeaving = {
        power(kBase, kOrders[0]), power(kBase, kOrders[1]), power(kBase, kOrders[2]),
        power(kBase, kOrders[3]), power(kBase, kOrders[4])};
    static_assert(kOrders[0] == 1);
    suffix_[0] = hash;
    for (size_t i = 1; i < kOrders.size(); i++) {
        const uint64_t leaving = hashes_[slot(now_ - kOrders[i])]; /* 0 before the first */
        suffix_[i] = suffix_[i] * kBase + hash - leaving * kLeaving[i];
    }
}

void stream::find_longer()
{
    for (size_t i = kOrders.size(); i-- > 0 && kOrders[i] > length_;) {
        /* A stale head is not held or fails to verify. */
        const auto back = static_cast<uint16_t>(now_ - head(i));
        const position candidate = now_ > back ? now_ - back : 0;
        const uint32_t length = candidate > 1 ? common_suffix(candidate) : 0;
        if (length > length_) {
            match_ = candidate;
            length_ = length;
            return;
        }
    }
}

void stream::learn(const zcp_receive_t &receive, bool nameless) noexcept
{
    const uint32_t hash = shape_hash(receive.envelope, nameless);
    now_++;
    if (held(match_) && hashes_[slot(match_)] == hash) {
        match_++;
        length_ = std::min(length_ + 1, kLongest);
        lost_ = 0;
    } else {
        lost_ = std::min(lost_ + 1, kLost);
        note_end_of_loop();
        match_ = 0;
        length_ = 0;
    }
    roll(hash);
    ring_[slot(now_)] = receive;
    hashes_[slot(now_)] = hash;
    /* Where nothing has been foretold for long, looking now and then will do. */
    if (lost_ < kLost || now_ % kSeldom == 0)
        find_longer();
    for (size_t i = 0; i < kOrders.size(); i++)
        head(i) = static_cast<uint16_t>(now_ + 1);
}

bool stream::adjacent(position p) const
{
    return held(p - 1) && side_by_side(ring_[slot(p - 1)], ring_[slot(p)]);
}

/* Do the last two receives begin a series of blocks, one per rank? */
bool stream::in_series() const
{
    if (now_ < 2)
        return false;
    const zcp_receive_t &a = ring_[slot(now_ - 1)];
    const zcp_receive_t &b = ring_[slot(now_)];
    return side_by_side(a, b) && a.envelope.source + 1 == b.envelope.source;
}

/* ---- loops ---- */

size_t stream::loop_slot(uint64_t lag, uint32_t shape, uint32_t &tag) const
{
    const uint64_t hash = mix(lag, shape);
    tag = static_cast<uint32_t>(hash);
    return (hash >> 32) % loops_.size();
}

/* The receive at now_ is not what the match foretold. */
void stream::note_end_of_loop()
{
    const uint64_t lag = now_ - match_;
    if (!held(match_) || length_ < lag || length_ == kLongest)
        return;
    uint32_t tag;
    loop_end &loop = loops_[loop_slot(lag, hashes_[slot(now_ - 1)], tag)];
    const bool known = loop.known != 0 && loop.tag == tag;
    const uint16_t steady = !known || loop.length == length_;
    loop = {tag, length_, static_cast<uint32_t>(now_), 1, steady};
}

/* What comes instead, if a match of that length has always ended here; 0: it goes on. */
stream::position stream::end_of_loop(uint64_t lag, uint32_t length, uint32_t shape) const
{
    if (length < lag)
        return 0;
    uint32_t tag;
    const loop_end &loop = loops_[loop_slot(lag, shape, tag)];
    if (loop.steady == 0 || loop.tag != tag || loop.length != length)
        return 0;
    const position after = now_ - (static_cast<uint32_t>(now_) - loop.after);
    return held(after) ? after : 0;
}

/* ---- what comes next ---- */

/* The size of what is foretold by @p, @rounds of @lag later. */
uint64_t stream::size_in(position p, uint64_t lag, uint64_t rounds) const
{
    std::array<uint64_t, kRounds> sizes; /* the last one first */
    uint32_t known = 0;
    bool varies = false;
    for (position q = p; known < sizes.size() && held(q) && hashes_[slot(q)] == hashes_[slot(p)];
         q -= std::min(lag, q)) {
        sizes[known] = ring_[slot(q)].envelope.bytes;
        varies |= sizes[known++] != sizes[0];
    }
    if (!varies)
        return sizes[0];
    history past{};
    past.fill(sizes[known - 1], 1);
    for (uint32_t i = known - 1; i-- > 0;)
        past.add(sizes[i]);
    return past.next(static_cast<uint32_t>(std::min<uint64_t>(rounds, kLongest)));
}

stream::walk::walk(const stream &of)
    : stream_(of), at_(of.held(of.match_) ? of.match_ : 0), lag_(of.now_ + 1 - at_),
      length_(of.length_), last_shape_(of.hashes_[of.slot(of.now_)]),
      previous_(of.ring_[of.slot(of.now_)])
{
}

stream::source stream::walk::step(zcp_receive_t &out)
{
    source how = source::none;
    if (at_ != 0) {
        if (const position end = stream_.end_of_loop(lag_, length_, last_shape_)) {
            lag_ += at_ - end;
            at_ = end;
            length_ = 0;
        }
        /* Beyond the present the foretold itself is repeated. */
        const position p =
            at_ <= stream_.now_ ? at_ : at_ - (at_ - stream_.now_ + lag_ - 1) / lag_ * lag_;
        out = stream_.ring_[stream_.slot(p)];
        out.envelope.bytes = stream_.size_in(p, lag_, (at_ - p) / lag_ + 1);
        how = stream_.adjacent(p) ? source::adjacent : source::past;
        last_shape_ = stream_.hashes_[stream_.slot(p)];
        length_ = std::min(length_ + 1, kLongest);
        at_++;
    } else if (stream_.in_series() && previous_.envelope.source != INT32_MAX) {
        out = previous_;
        out.envelope.source++;
        how = source::adjacent;
    } else {
        return source::none;
    }
    if (how == source::adjacent)
        out.addr = previous_.addr + previous_.envelope.bytes;
    previous_ = out;
    return how;
}

size_t stream::bytes() const noexcept
{
    return ring_.bytes() + hashes_.bytes() + loops_.bytes() + heads_.bytes();
}

} // namespace zc::predict
