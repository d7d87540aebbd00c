/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_KEY_H_INCLUDED
#define ZCP_KEY_H_INCLUDED

#include <cstdint>

#include "hash.h"
#include "zcp/predictor.h"

namespace zc::predict {

/** How much of a message's size its key holds. */
enum class sizing : uint32_t { any, rough, exact };

/** What messages are told apart by: communicator, sender, tag, and their size more or less. */
struct key {
    uint32_t comm;
    int32_t source;
    int32_t tag;
    sizing sized;
    uint64_t bytes; /* 0; the rough size; the size */

    bool operator==(const key &) const = default;

    static key exact(const zcp_envelope_t &e) { return of(e, sizing::exact, e.bytes); }
    static key rough(const zcp_envelope_t &e) { return of(e, sizing::rough, rough_size(e.bytes)); }
    static key any_size(const zcp_envelope_t &e) { return of(e, sizing::any, 0); }

    /** Of a cache of their own: all tags and communicators of a sender; all senders of a tag. */
    static key sender(const zcp_envelope_t &e) { return {0, e.source, 0, sizing::exact, e.bytes}; }
    static key any_source(const zcp_envelope_t &e) { return {e.comm, -1, e.tag, sizing::any, 0}; }

    bool same_flow(const key &other) const
    {
        return comm == other.comm && source == other.source && tag == other.tag;
    }
    /** Of an exact key. */
    zcp_envelope_t envelope() const { return {comm, source, tag, bytes}; }

    uint64_t hash() const
    {
        const uint64_t match = (uint64_t{static_cast<uint32_t>(source)} << 32) | comm;
        const uint64_t rest =
            (uint64_t{static_cast<uint32_t>(tag)} << 2) | static_cast<uint32_t>(sized);
        /* Odd factors keep the parts apart until mix() spreads them. */
        return mix(match * 0xd1342543de82ef95u + rest, bytes * 0xaf251af3b0f025b5u);
    }

  private:
    static key of(const zcp_envelope_t &e, sizing sized, uint64_t bytes)
    {
        return {e.comm, e.source, e.tag, sized, bytes};
    }
};

} // namespace zc::predict

#endif
