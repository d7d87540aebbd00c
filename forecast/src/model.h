/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_MODEL_H_INCLUDED
#define ZCF_MODEL_H_INCLUDED

#include "network.h"

namespace zc::forecast {

/**
 * What ch4:zc does with a message, as numbers. The defaults are those of the
 * netmod's settings (zc(7)) and the figures of docs/performance.md.
 */
struct zc_model {
    /* Messages of at least so many bytes are announced, and landed if no receive is there. */
    std::uint64_t announce_remote = 128 << 10;
    std::uint64_t announce_local = 32 << 10;
    /* Landing memory of a process; when it is spent, messages stay with their senders. */
    std::uint64_t landing_budget = 256 << 20;
    /* Those of at least so many bytes are transferred while both programs compute: announced ones
     * (of 256 KiB 65 % are hidden, of 16 MiB 98 %). */
    std::uint64_t overlap_bytes = 128 << 10;
    double rebind_ns =
        145'000; /* a landed message is delivered by new page tables at most in this */
    double deliver_ns = 20'000; /* or by a copy: this, and its bytes */
    double copy_rate = 8;       /* bytes per nanosecond */
    double hit_rate =
        1; /* share of landed messages whose address was foreseen; others are copied */
    double network::path::*rate = &network::path::usual;
    /* Messages that went both ways at once between two ranks do not delay each other. */
    bool apart_both_ways = false;
    bool frees_senders = true; /* to ask for parts of the whole: a held sender goes on */
    bool lands = true;         /* and a late receiver finds its message there */

    std::uint64_t announced_from(const message &m) const
    {
        return m.one_host ? announce_local : announce_remote;
    }

    /** A transfer that nothing delays, and whose rate is not known. */
    double transfer_ns(const message &m, const network &n) const;

    /** From the receive of a message that is in memory already to its data in the user's buffer. */
    double delivery_ns(const message &m) const;
};

/** The three of an estimate: what can be counted on, what is likely, what is possible. */
zc_model cautious_model(double hit_rate);
zc_model likely_model(double hit_rate);
zc_model hopeful_model();

} // namespace zc::forecast

#endif
