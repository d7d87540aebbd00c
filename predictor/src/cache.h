/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_CACHE_H_INCLUDED
#define ZCP_CACHE_H_INCLUDED

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "zeroed.h"

namespace zc::predict {

/**
 * Map of fixed memory: set-associative like a CPU's cache. A key has two sets (cuckoo
 * hashing without moves): the second takes what does not fit into the first, so live keys
 * hardly displace each other while a third of the entries is free. A new key that finds
 * both full replaces the least recently used entry of the two, so dead keys age out and
 * every operation looks at 2 kWays entries at most.
 *
 *   hash ──▶ set │ tag tag … tag  use use … use │   a cache line per set tells whether
 *                │ K,V K,V … K,V                │   a key is there
 */
template <typename Key, typename Value>
class cache {
  public:
    static constexpr uint32_t kWays = 8;
    static constexpr size_t kEntryBytes = sizeof(Key) + sizeof(Value) + 2 * sizeof(uint32_t);
    static constexpr uint32_t kNone = UINT32_MAX;

    /** As many entries as fit into @max_bytes, one set at least. */
    explicit cache(size_t max_bytes)
        : nr_sets_(static_cast<uint32_t>(
              std::clamp<size_t>(max_bytes / (kWays * kEntryBytes), 1, UINT32_MAX / kWays))),
          sets_(nr_sets_), entries_(size_t{nr_sets_} * kWays)
    {
    }

    /** The value of @key, or nullptr. */
    const Value *find(const Key &key, uint64_t hash) const
    {
        const uint32_t i = index_of(key, hash);
        return i == kNone ? nullptr : &entries_[i].value;
    }

    /** As find(), and counts as a use. */
    Value *touch(const Key &key, uint64_t hash)
    {
        const uint32_t i = index_of(key, hash);
        if (i == kNone)
            return nullptr;
        use(i);
        return &entries_[i].value;
    }

    /**
     * The value of @key, zero bytes if it is new; counts as a use. nullptr if every
     * entry it could replace is @pinned or was among the last @recent used.
     */
    template <typename Pinned>
    Value *insert(const Key &key, uint64_t hash, Pinned pinned, uint32_t recent = 0)
    {
        if (Value *value = touch(key, hash))
            return value;
        uint32_t i = victim(hash, pinned, recent);
        if (i == kNone)
            return nullptr;
        /* Where a neglected entry is in the way of being found at once, it moves. */
        if (const uint32_t likely = likely_index(hash);
            i != likely && i / kWays == likely / kWays && is_neglected(likely) &&
            !pinned(value_at(likely))) {
            move(likely, i);
            i = likely;
        }
        sets_[i / kWays].tags[i % kWays] = tag(hash);
        use(i);
        entries_[i] = {key, Value{}};
        return &entries_[i].value;
    }

    Value *insert(const Key &key, uint64_t hash)
    {
        return insert(key, hash, [](const Value &) { return false; });
    }

    /** An index stays good while its entry is neither neglected nor replaced. */
    uint32_t index(const Value *value) const
    {
        const auto offset = reinterpret_cast<const char *>(value) -
                            reinterpret_cast<const char *>(&entries_[0].value);
        return static_cast<uint32_t>(static_cast<size_t>(offset) / sizeof(entry));
    }
    const Key &key_at(uint32_t i) const { return entries_[i].key; }
    Value &value_at(uint32_t i) { return entries_[i].value; }
    const Value &value_at(uint32_t i) const { return entries_[i].value; }
    void use(uint32_t i) { sets_[i / kWays].uses[i % kWays] = ++now_; }
    /** As if it had not been used for ages: the first of its set to be replaced, or moved
     *  within it. */
    void neglect(uint32_t i) { sets_[i / kWays].uses[i % kWays] = now_ - 2 * kLongUnused; }

    uint32_t size() const { return nr_sets_ * kWays; }
    size_t bytes() const { return sets_.bytes() + entries_.bytes(); }

  private:
    struct entry {
        Key key;
        Value value;
    };
    struct labels {
        uint32_t tags[kWays]; /* 0: free */
        uint32_t uses[kWays]; /* when last used */
    };
    static_assert(sizeof(entry) == sizeof(Key) + sizeof(Value), "padding would break the budget");

    static constexpr uint32_t kLongUnused = UINT32_MAX / 4;

    bool is_neglected(uint32_t i) const { return !is_free(i) && now_ - used(i) > kLongUnused; }
    void move(uint32_t from, uint32_t to)
    {
        sets_[to / kWays].tags[to % kWays] = sets_[from / kWays].tags[from % kWays];
        sets_[to / kWays].uses[to % kWays] = used(from);
        entries_[to] = entries_[from];
    }
    bool is_free(uint32_t i) const { return sets_[i / kWays].tags[i % kWays] == 0; }
    uint32_t used(uint32_t i) const { return sets_[i / kWays].uses[i % kWays]; }
    static uint32_t tag(uint64_t hash) { return static_cast<uint32_t>(hash) | 1; }
    /* The way a key takes if it is free, and where it is looked for first. */
    uint32_t likely_index(uint64_t hash) const
    {
        return set_of(hash) * kWays + static_cast<uint32_t>(hash >> 8) % kWays;
    }

    uint32_t set_of(uint64_t hash) const
    {
        return static_cast<uint32_t>(((hash >> 32) * nr_sets_) >> 32);
    }
    uint32_t second_set_of(uint64_t hash) const { return set_of(std::rotl(hash, 32)); }

    uint32_t index_of(const Key &key, uint64_t hash) const
    {
        const uint32_t likely = likely_index(hash);
        if (entries_[likely].key == key && !is_free(likely))
            return likely;
        const uint32_t i = index_within(likely / kWays, key, hash);
        return i != kNone ? i : index_within(second_set_of(hash), key, hash);
    }

    uint32_t index_within(uint32_t set, const Key &key, uint64_t hash) const
    {
        /* All tags at once: which way it is cannot be foretold by a branch. */
        const uint32_t wanted = tag(hash);
        uint32_t matches = 0;
        for (uint32_t way = 0; way < kWays; way++)
            matches |= static_cast<uint32_t>(sets_[set].tags[way] == wanted) << way;
        for (; matches != 0; matches &= matches - 1) {
            const uint32_t i = set * kWays + static_cast<uint32_t>(std::countr_zero(matches));
            if (entries_[i].key == key)
                return i;
        }
        return kNone;
    }

    template <typename Pinned>
    uint32_t victim(uint64_t hash, Pinned pinned, uint32_t recent) const
    {
        const uint32_t likely = likely_index(hash);
        if (is_free(likely))
            return likely;
        uint32_t oldest = kNone;
        uint32_t age = recent;
        for (const uint32_t set : {likely / kWays, second_set_of(hash)}) {
            for (uint32_t way = 0; way < kWays; way++) {
                const uint32_t i = set * kWays + way;
                if (is_free(i))
                    return i;
                /* Ages, not times, are compared: the clock may wrap. */
                if (now_ - used(i) >= age && !pinned(value_at(i))) {
                    oldest = i;
                    age = now_ - used(i);
                }
            }
        }
        return oldest;
    }

    uint32_t nr_sets_;
    uint32_t now_ = 0;
    zeroed<labels> sets_;
    zeroed<entry> entries_;
};

} // namespace zc::predict

#endif
