/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_KEY_H_INCLUDED
#define ZCP_KEY_H_INCLUDED

#include <cstdint>

#include "hash.h"
#include "zcp/predictor.h"

namespace zc::predict {

/** What messages are told apart by: the envelope, or the envelope without its size. */
struct key {
    uint32_t comm;
    int32_t source;
    int32_t tag;
    uint32_t sized; /* 1: bytes counts; 0: messages of any size, bytes is 0 */
    uint64_t bytes;

    bool operator==(const key &) const = default;

    static key exact(const zcp_envelope_t &e) { return {e.comm, e.source, e.tag, 1, e.bytes}; }
    static key any_size(const zcp_envelope_t &e) { return {e.comm, e.source, e.tag, 0, 0}; }

    zcp_envelope_t envelope() const { return {comm, source, tag, bytes}; }

    uint64_t hash() const
    {
        const uint64_t match = (uint64_t{static_cast<uint32_t>(source)} << 32) | comm;
        const uint64_t rest = (uint64_t{sized} << 32) | static_cast<uint32_t>(tag);
        return mix(mix(mix(2, match), rest), bytes);
    }
};

} // namespace zc::predict

#endif
