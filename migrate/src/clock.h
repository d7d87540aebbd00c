/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <limits>

namespace zc::migrate {

/** Time of a clock that only goes forward; not MPI_Wtime(), as threads without MPI ask too. */
double seconds();
double ms_since(double begin);
/** A time limit in seconds, or a deadline, that never comes: who waits finds out otherwise whether
 *  the other is still there. */
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/** Give way after having found nothing to do; the longer, the more. */
class pause {
  public:
    void rest();
    void reset() { rounds_ = 0; }

  private:
    unsigned rounds_ = 0;
};

} // namespace zc::migrate
