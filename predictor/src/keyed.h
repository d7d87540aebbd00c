/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_KEYED_H_INCLUDED
#define ZCP_KEYED_H_INCLUDED

#include <optional>

#include "cache.h"
#include "engine.h"
#include "histories.h"
#include "key.h"
#include "newcomers.h"
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
    score answers;     /* exact: given and withheld ones */
    uint8_t sizes : 2; /* seen of that sender and tag, saturating; exact: 1 or more than 1 */
    uint8_t
        narrow : 1; /* no wide key is learned beside it: it is right by itself, or none helped */
    uint8_t credit : 5; /* of wide keys: up where they were right and this was not, saturating */
    uint8_t fresh;      /* any: how many in a row were not known */
};
static_assert(sizeof(key) + sizeof(substream) == 64, "one cache line");

/** An address for a message, and the key it came from. */
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
 * Keys that are new, or do not prove right, are learned under two wide keys too:
 *
 *   sender      (source, bytes)       tags or communicators are new every time
 *   any source  (communicator, tag)   buffers in turn for the first sender, as
 *                                     receives with MPI_ANY_SOURCE take them
 *
 * The latter holds only where messages are received in the order they come, which
 * an all-to-all does not; so it is believed for what it foretold when messages came,
 * not for what it could have foretold when they were received.
 *
 * Where no address recurs but all have one page offset, that is the answer: a
 * buffer allocated anew for each message mostly begins where the last one did
 * in its page. The same goes for messages nothing like which has come before.
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
    static_assert(kNone == entries::kNone);
    static constexpr uint32_t kWide = uint32_t{1} << 31; /* entries from here on are of wide_ */

    substream &at(uint32_t entry);
    const substream &at(uint32_t entry) const;
    uint32_t insert_wide(const key &key);
    void add_wide(const zcp_envelope_t &envelope, entries &out);
    void learn_wide(const entries &entries, const zcp_receive_t &receive);
    static void credit(substream &sub, bool right, bool known);
    void credit_wide(const entries &entries, uint32_t wide, bool right, uint64_t addr);
    static uint32_t referee(const entries &entries);
    uint32_t find_wide(const key &key, uint64_t hash) const;
    void follow(substream &sub, uint32_t entry, uint64_t addr);
    void count_unsettled(const entries &entries, int change);
    uint32_t evidence(uint32_t entry) const;
    bool foretell_newcomer(uint64_t bytes, newcomers::answer &out) const;

    uint32_t find(const key &key, uint64_t hash) const;
    uint32_t insert(const key &key);
    uint32_t insert_spare(const key &key);
    bool is(uint32_t entry, const key &key) const;
    entries known_entries(const zcp_envelope_t &envelope) const;
    bool make_entries(const zcp_envelope_t &envelope, entries &out);
    bool make_new_size(const zcp_envelope_t &envelope, entries &out);
    void link_rough(const zcp_envelope_t &envelope, uint32_t exact, entries &out);
    void adopt(uint32_t heir, uint32_t from);

    histories &histories_of(uint32_t entry) { return entry < kWide ? histories_ : wide_histories_; }
    const histories &histories_of(uint32_t entry) const
    {
        return entry < kWide ? histories_ : wide_histories_;
    }
    uint64_t expected(const substream &sub, uint32_t entry, uint32_t nth) const;
    bool can_answer(const substream &sub, uint32_t more) const;
    bool choose(const entries &entries, uint32_t more, keyed_guess &out) const;
    bool choose_among_wider(const entries &entries, uint32_t more, keyed_guess &out) const;
    uint32_t sure_class(const substream &sub, uint64_t bytes) const;
    void learn(substream &sub, uint32_t entry, uint64_t addr);
    void learn(const entries &entries, const zcp_receive_t &receive);
    void learn_varying(substream &sub, uint32_t entry, uint64_t addr);

    cache<key, substream> substreams_;
    cache<key, substream> wide_;
    histories histories_;
    histories wide_histories_;
    stream stream_;
    newcomers newcomers_;
    uint32_t renamed_ = 0;  /* share of receives whose tag or communicator alone was new, decayed */
    bool nameless_ = false; /* that share has become high */
};

} // namespace zc::predict

#endif
