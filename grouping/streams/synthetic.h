/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_SYNTHETIC_H_INCLUDED
#define ZCP_GROUPING_SYNTHETIC_H_INCLUDED

#include <cstddef>

#include "stream.h"

namespace zc::groups {

/** Same numbers from the same seed, on every machine (splitmix64, Steele et al. 2014). */
class dice {
  public:
    explicit dice(uint64_t seed) : state_(seed) {}

    uint64_t next();
    /** 0 … @below - 1; @below ≥ 1. */
    uint32_t below(uint32_t below) { return static_cast<uint32_t>(next() % below); }
    /** 0 … 1, 1 excluded. */
    double real() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  private:
    uint64_t state_;
};

/** What all generators share. */
struct recipe {
    uint32_t ranks = 64;
    size_t events = 20000;
    double noise = 0;  /* share of messages between two ranks chosen at random */
    double jitter = 0; /* an event may come up to this many places late; a sender keeps its order */
    uint64_t seed = 1;
};

/** Rank 0 hands a task to each other rank and gets an answer from each. */
event_stream master_slave(const recipe &r);
/**
 * Master/slave in three phases, over and over: rank 0 hands @shares pieces of its data to
 * each worker in turn; in each of @steps, every worker sends to the next one; then each
 * returns its result. At least three ranks.
 */
event_stream master_slave_phases(const recipe &r, uint32_t shares, uint32_t steps);
/**
 * Finite elements: each rank exchanges with its neighbours in a nearly square
 * grid and with a few others, fixed for the run, as an unstructured mesh has them.
 */
event_stream fem(const recipe &r);
/** FFT: in stage s, rank p exchanges with p xor 2^s. Ranks: a power of two. */
event_stream butterfly(const recipe &r);
/** By turns: @first iterations of fem, @second of butterfly. Ranks: a power of two. */
event_stream phases(const recipe &r, uint32_t first, uint32_t second);
/** Partners that change for good every @lasting events, unforeseeably. */
event_stream drifting(const recipe &r, size_t lasting);
/** Nothing to learn. */
event_stream random_pairs(const recipe &r);

} // namespace zc::groups

#endif
