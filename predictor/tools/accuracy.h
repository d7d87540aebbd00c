/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_TOOLS_ACCURACY_H_INCLUDED
#define ZCP_TOOLS_ACCURACY_H_INCLUDED

#include <array>
#include <string>

#include "receive_trace.h"
#include "share.h"

namespace zc::report {

constexpr uint32_t kHorizons = 10;

enum class order { post, arrival };

/** Why the next receive was not foretold (or that it was). */
enum class next_outcome {
    right,
    never_seen, /* this (sender, bytes, address) had not been seen before */
    silent,     /* nothing was foretold */
    wrong_sender,
    wrong_size,    /* the sender was right */
    wrong_address, /* sender and size were right */
    count
};
constexpr std::array<const char *, static_cast<size_t>(next_outcome::count)> kNextOutcomes = {
    "right", "never seen", "silent", "wrong sender", "wrong size", "wrong address"};

/** [class][h - 1] */
using shares_ahead = std::array<std::array<share, kHorizons>, nr_size_classes>;

/** What of a receive must have been foretold to be right. */
enum class part { address, size, both, count };
constexpr std::array<const char *, static_cast<size_t>(part::count)> kParts = {"address", "size",
                                                                               "address and size"};

/** How well the coming receives were foretold. */
struct accuracy {
    shares_ahead ahead;                                    /* sender, size and address */
    std::array<shares_ahead, kParts.size()> parts;         /* of the stream as a whole only */
    std::array<uint64_t, kNextOutcomes.size()> outcomes{}; /* at +1, over 8 KiB */
    /* Messages seen before nine of ten were foretold at +1, over 50 in a row; -1: never. */
    int64_t learned_after = -1;
};

/**
 * Of the stream as a whole: what next() said h receives before. Right if
 * sender, bytes and address are all right; nothing said counts as wrong, so the
 * cold start does too.
 */
accuracy measure_accuracy(const trace &trace, const std::string &predictor, order order);

/**
 * Of the address alone, given the envelope, knowing the receives up to h
 * before: a message asks when it comes and settles h - 1 messages later.
 */
accuracy measure_keyed_accuracy(const trace &trace, const std::string &predictor, order order);

} // namespace zc::report

#endif
