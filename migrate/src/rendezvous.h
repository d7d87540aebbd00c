/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "negotiation.h"
#include "request_source.h"

namespace zc::migrate {

/**
 * What a rank does at its safe points from the moment that a request is under way until all ranks
 * meet, or until the request is refused:
 *
 *             rank 0: searching ─┐
 *     calm ──▶                   ├─▶ agreed ──▶ gathering ──▶ met ──▶ calm
 *             others: find it   ─┘     ▲ put off ───────────── │
 *                                                     ▲        │
 *                                                     └────────┘ again
 *
 * It goes in steps that do not block and are handed the time, so that a test can run through
 * all orders in which those of several ranks can be made.
 */
class rendezvous {
  public:
    /** @before_settling: called before a request is done with here; @before_arriving: when this
     * rank has come to where all meet. Tests make them take their time. */
    rendezvous(negotiation &agreement, request_source &requests, double patience_s,
               std::function<void()> before_settling = {},
               std::function<void()> before_arriving = {});
    rendezvous(const rendezvous &) = delete;
    rendezvous &operator=(const rendezvous &) = delete;

    /**
     * go_on: leave the safe point. met: all are here. Else the rank stays, and makes the step
     * again, after a rest if there was nothing new.
     */
    enum class next { go_on, met, again, wait };
    /** At @now, at safe point @n, where the negotiation is called. */
    next step(std::int64_t n, double now);

    /**
     * All have met, and have called functions of the program: they meet again, by @deadline, as
     * one need not return. It is that of @function. step() goes on with it.
     */
    next meet_again(const std::string &function, double limit_s, double deadline, double now);

    /** When this rank came to the meeting, and how often it was put off before. */
    double met() const noexcept { return met_; }
    int attempts() const noexcept { return attempts_; }
    /** All meet again, one safe point later. */
    void put_off() noexcept;
    /** The request is done with. */
    void settle();
    /** It is over; rank 0 answers it with @text. */
    void outcome(const std::string &text);

    /** As negotiation::state(), at @now. */
    std::vector<double> state(double now) const;

  private:
    enum class stage { calm, searching, agreed, gathering };

    bool leads() const noexcept { return agreement_.leads(); }
    next choose_place(std::int64_t n, double now);
    next find_place(std::int64_t n, double now);
    next arrive(double now);
    next gather(double now);
    next refuse(int missing);

    negotiation &agreement_;
    request_source &requests_;
    const double patience_s_;
    const std::function<void()> before_settling_, before_arriving_;

    stage stage_ = stage::calm;
    std::int64_t target_ = 0; /* the safe point where all meet */
    int attempts_ = 0;
    int meetings_ = 0;      /* of this request, those that were put off included */
    std::string function_;  /* of the program, which some rank is in; "" if none need be */
    double function_s_ = 0; /* so long may it take */
    std::optional<double> waits_since_; /* at this safe point, for a place */
    double deadline_ = 0;               /* rank 0: for all to have met */
    double met_ = 0;
    double leaves_ = 0; /* the meeting, if not all have come by then */
};

} // namespace zc::migrate
