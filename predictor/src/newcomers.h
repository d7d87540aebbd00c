/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_NEWCOMERS_H_INCLUDED
#define ZCP_NEWCOMERS_H_INCLUDED

#include <algorithm>
#include <array>
#include <bit>

#include "predictor.h"
#include "trust.h"

namespace zc::predict {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
/* From here on landing buffers are congruent modulo huge pages. */
constexpr uint64_t kHugeMessage = uint64_t{4} << 20;

/**
 * Where the first message of a sender and tag goes. Its address cannot be known,
 * but its congruence class often can: large buffers come from one allocator, which
 * puts them all at one offset in the page (16 bytes, in glibc). So the class of the
 * last newcomer of about that size is foretold, once that has proved right.
 */
class newcomers {
  public:
    struct answer {
        uint64_t like; /* an address of that class */
        uint64_t modulus;
        float confidence;
    };

    void learn(uint64_t bytes, uint64_t addr)
    {
        bucket &b = buckets_[bucket_of(bytes)];
        if (!b.page.begun()) {
            b.page.begin(trust::half(), 0);
            b.huge_page.begin(trust::half(), 0);
        } else {
            b.page.count(congruent(b.last, addr));
            b.huge_page.count((b.last ^ addr) % kHugePageBytes == 0);
        }
        b.last = addr;
    }

    /** False if nothing can be said with at least @enough trust. */
    bool foretell(uint64_t bytes, float enough, answer &out) const
    {
        const bucket &b = buckets_[bucket_of(bytes)];
        if (bytes >= kHugeMessage && b.huge_page.value() >= enough)
            out = {b.last, kHugePageBytes, b.huge_page.confidence()};
        else if (b.page.value() >= enough)
            out = {b.last, kPageBytes, b.page.confidence()};
        else
            return false;
        return true;
    }

  private:
    struct bucket {
        uint64_t last;
        score page;
        score huge_page;
    };
    static size_t bucket_of(uint64_t bytes) { return static_cast<size_t>(std::bit_width(bytes)); }

    std::array<bucket, 65> buckets_{};
};

} // namespace zc::predict

#endif
