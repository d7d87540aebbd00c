/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCF_MEETING_H_INCLUDED
#define ZCF_MEETING_H_INCLUDED

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace zc::forecast {

/** A time of the replay that has not come. */
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
/** A time before all others. */
constexpr double kAtOnce = -std::numeric_limits<double>::infinity();

/**
 * One collective of a group: who has begun it, and when.
 *
 * Each member is counted when it begins, so that the others, which look again and again, need not
 * go through all of them.
 */
class meeting {
  public:
    explicit meeting(std::size_t nr_members) : seats_(nr_members), nr_missing_(nr_members) {}

    /** The member at @place begins; each does so once. */
    void begin(std::size_t place, double now)
    {
        seats_[place].begun = now;
        last_ = std::max(last_, now);
        nr_missing_--;
        for (; nr_first_ < seats_.size() && !std::isnan(seats_[nr_first_].begun); nr_first_++)
            seats_[nr_first_].up_to_it =
                std::max(seats_[nr_first_].begun, of_those_before(nr_first_));
    }

    /** Some wait for the member at @place alone; to be said before any begins. */
    void name_root(std::size_t place) { seats_[place].root = true; }
    bool is_root(std::size_t place) const { return seats_[place].root; }

    /** To be held again, with the same roots. */
    void clear()
    {
        for (seat &s : seats_)
            s.begun = s.up_to_it = kUnknown;
        nr_missing_ = seats_.size();
        nr_first_ = 0;
        last_ = kAtOnce;
    }

    /** So many of the first members have begun. */
    std::size_t nr_first() const { return nr_first_; }
    bool complete() const { return nr_missing_ == 0; }

    /* When they had begun; unknown as long as one of them has not. */
    double of_all() const { return complete() ? last_ : kUnknown; }
    double of_one(std::size_t place) const { return seats_[place].begun; }
    double of_those_before(std::size_t place) const
    {
        return place == 0 ? kAtOnce : seats_[place - 1].up_to_it;
    }

  private:
    struct seat {
        double begun = kUnknown;
        double up_to_it = kUnknown; /* when it and all before it had begun */
        bool root = false;
    };
    std::vector<seat> seats_;
    std::size_t nr_missing_;
    std::size_t nr_first_ = 0;
    double last_ = kAtOnce;
};

} // namespace zc::forecast

#endif
