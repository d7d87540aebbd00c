/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_SRC_PREDICTOR_H_INCLUDED
#define ZCP_SRC_PREDICTOR_H_INCLUDED

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "zcp/predictor.h"

namespace zc::predict {

/** A landing question. */
struct query {
    const zcp_envelope_t &envelope;
    /* Which of the coming receives of this envelope is meant, from 1: those
     * before it belong to messages that arrived earlier and are not settled.
     * MPI's non-overtaking rule makes their order known. */
    uint32_t nth;
    std::span<zcp_receive_t> scratch; /* as long as the horizon; content is undefined */
};

/** An answer. */
struct guess {
    uint64_t addr;
    uint32_t ahead;
};

/** What a predictor of the stream is to landing and the API. */
class predictor {
  public:
    virtual ~predictor() = default;

    /** The next receive of the stream. Constant time. */
    virtual void learn(const zcp_receive_t &receive) noexcept = 0;

    /** Fills @out with the receives expected next, nearest first. Returns how many. */
    virtual uint32_t next(std::span<zcp_receive_t> out) const noexcept = 0;

    /**
     * Where will the message of @q go? The general answer searches next() for
     * the envelope; predictors that know more override it.
     */
    virtual bool locate(const query &q, guess &out) const noexcept;

    /** 0, or of the congruence classes that are all it answers. */
    virtual uint32_t modulus() const noexcept { return 0; }
    /** How its answers come about. */
    virtual zcp_cause_t cause() const noexcept { return ZCP_CAUSE_STREAM; }

    virtual size_t bytes() const noexcept = 0;
};

constexpr uint64_t kPageBytes = 4096;

/** Equal offset in the page. */
constexpr bool congruent(uint64_t a, uint64_t b)
{
    return (a ^ b) % kPageBytes == 0;
}

} // namespace zc::predict

#endif
