/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <mpi.h>

#include "world.h"

namespace zc::migrate {

/**
 * What zcm_world() is in a successor until its first safe point, where it becomes the rank and is
 * linked up with the others. It has the rank and the size of the world (wrappers.cpp answers
 * MPI_Comm_rank() and MPI_Comm_size() from here), as programs ask for both before they
 * register anything. They must not communicate yet: to a collective call it is a communicator of
 * one process, and to others there is no process that a message could go to.
 */
class stand_in {
  public:
    static world make(int rank, int size);
    static void give_up(world &it);

    static bool is(MPI_Comm comm) noexcept { return comm == comm_ && comm != MPI_COMM_NULL; }
    static int rank() noexcept { return rank_; }
    static int size() noexcept { return size_; }

  private:
    static inline MPI_Comm comm_ = MPI_COMM_NULL;
    static inline int rank_ = 0, size_ = 1;
};

} // namespace zc::migrate
