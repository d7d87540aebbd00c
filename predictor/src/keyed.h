/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_KEYED_H_INCLUDED
#define ZCP_KEYED_H_INCLUDED

#include <optional>

#include "cache.h"
#include "engine.h"
#include "histories.h"
#include "key.h"
#include "stream.h"
#include "trust.h"

namespace zc::predict {

/** What is known of the addresses of one key. */
struct substream {
    uint64_t last;
    uint32_t repeats;   /* times in a row last was seen, saturating; 0: nothing known */
    uint32_t unsettled; /* messages; while there are any the entry stays */
    uint32_t history;   /* slot, if it is still ours; 0: none needed */
    uint32_t any;       /* exact: entry of any size, + 1. Any: the only exact one, + 1 */
    uint32_t rough;     /* exact: entry of rough size, + 1 */
    trust address;      /* receives that went where expected */
    trust page;         /* receives at the same offset in the page as the one before */
    trust huge_page;
    score answers; /* exact: given and withheld ones */
    uint8_t sizes; /* seen of that sender and tag, saturating; exact: 1 or more than 1 */
    uint8_t fresh; /* any: how many in a row were not known */
};
static_assert(sizeof(key) + sizeof(substream) == 64, "one cache line");

/** The entries an envelope is learned under; those that are not needed are kNone. */
struct entries {
    uint32_t exact; /* the rough one, where sizes are new every time */
    uint32_t rough;
    uint32_t any;
};
/** An address for a message, and whose it is. */
struct keyed_guess {
    uint32_t entry;
    uint64_t addr;
    uint32_t ahead;
};

/**
 * The default engine. Messages do not arrive in the order they are requested,
 * but those of one sender, tag and communicator do; so each key has its own
 * substream of addresses, and only next() looks at the stream of all.
 *
 * A key is an envelope. Buffers usually go with an exact size; but where sizes
 * drift (particles, adaptive meshes) only the substream of roughly that size,
 * or of any size, repeats. So a sender and tag that has shown several sizes is
 * learned under three keys, and the most exact one that can be trusted answers:
 *
 *   exact  (comm, source, tag, bytes)  ──▶ rough (…, about so many bytes)
 *                                      ──▶ any   (…)
 *
 * The exact entry knows where the other two are. Nearly all keys have one
 * buffer and take one cache line; a key gets a history when its address changes
 * and gives it back when it has settled.
 *
 * Where no address recurs but all have one page offset, that is the answer: a
 * buffer allocated anew for each message mostly begins where the last one did
 * in its page.
 */
class keyed final : public zcp {
  public:
    keyed(size_t max_bytes, uint32_t horizon, float min_confidence);

    uint32_t next(std::span<zcp_receive_t> out) const noexcept override;
    void explain(const zcp_envelope_t &envelope, zcp_explanation_t &out) const noexcept override;

  protected:
    void learn(const zcp_receive_t &receive) noexcept override;
    bool open(const zcp_envelope_t &envelope, message &claim) noexcept override;
    void answer(const zcp_envelope_t &envelope, message &claim,
                zcp_landing_t &out) noexcept override;
    void close(const message &claim) noexcept override;
    void settle(const message &claim, uint64_t addr) noexcept override;
    size_t bytes() const noexcept override;

  private:
    static constexpr uint32_t kNone = cache<key, substream>::kNone;

    uint32_t find(const key &key, uint64_t hash) const;
    uint32_t insert(const key &key);
    bool is(uint32_t entry, const key &key) const;
    entries known_entries(const zcp_envelope_t &envelope) const;
    bool make_entries(const zcp_envelope_t &envelope, entries &out);
    bool make_new_size(const zcp_envelope_t &envelope, entries &out);
    void link_rough(const zcp_envelope_t &envelope, uint32_t exact, entries &out);
    void adopt(uint32_t heir, uint32_t from);

    uint64_t expected(uint32_t entry, uint32_t nth) const;
    bool choose(const entries &entries, uint32_t more, keyed_guess &out) const;
    uint32_t sure_class(const substream &sub, uint64_t bytes) const;
    void learn(uint32_t entry, uint64_t addr);
    void learn(const entries &entries, const zcp_receive_t &receive);
    void learn_varying(uint32_t entry, uint64_t addr);

    cache<key, substream> substreams_;
    histories histories_;
    stream stream_;
};

} // namespace zc::predict

#endif
