/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <functional>
#include <mpi.h>
#include <string>

#include "move_party.h"

namespace zc::migrate {

/**
 * While the state of ranks that move is on its way and the others run, rank 0 has a request to
 * answer: when the leavers have told it what it took. It takes part in what they agree on without
 * waiting: see move_transaction::measure().
 */
class late_report {
  public:
    /** @between: the leavers and this rank; given up at the end. @text: of the answer. */
    late_report(MPI_Comm between, std::function<std::string(const effort_of_all &)> text);
    late_report(const late_report &) = delete;
    late_report &operator=(const late_report &) = delete;

    /** Does not block, but for what the leavers have begun. It never is there if one of them has
     * died, which its successor finds out and reports. */
    bool is_there();
    /** Until it is or cannot be any more; others are answered meanwhile. */
    void await();
    /** Once it is there. */
    std::string text() const { return text_(told_); }

  private:
    MPI_Comm between_;
    std::function<std::string(const effort_of_all &)> text_;
    const effort_of_all none_; /* this rank's part: it has not moved */
    effort_of_all told_;
    std::array<MPI_Request, 2> requests_{};
    bool lost_ = false;
};

} // namespace zc::migrate
