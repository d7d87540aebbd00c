/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <mpi.h>
#include <mutex>
#include <vector>

#include "communicator.h"

namespace zc::migrate {

/**
 * The processes of the job, and those of others that it has met: by numbers, as the handles of MPI
 * mean nothing in another process, or after a move.
 */
class processes {
  public:
    processes() = default;
    processes(const processes &) = delete;
    processes &operator=(const processes &) = delete;

    /** Ranks of @world are those of the job from now on. Local. */
    void link(MPI_Comm world);
    void forget();

    /** Who is in @real: on the other side, if @remote. Local. */
    members of(MPI_Comm real, bool remote);
    members of(MPI_Group group);

    /** The group of @which, all of whom are in the local group of @real, whose members are @in. */
    static MPI_Group group(const members &which, MPI_Comm real, const members &in);
    /** Of the job alone; MPI_GROUP_NULL if there are others. */
    MPI_Group group(const members &which) const;

    static constexpr int stranger(std::size_t i) { return -2 - static_cast<int>(i); }
    std::size_t size() const noexcept { return ranks_.size(); }

  private:
    void forget_ranks();
    int find(MPI_Group one, std::size_t &begin);

    std::mutex mutex_;
    std::vector<MPI_Group> ranks_; /* each alone */
    std::vector<MPI_Group> strangers_;
    MPI_Group all_ = MPI_GROUP_NULL;
};

} // namespace zc::migrate
