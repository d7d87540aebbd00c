/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <mpi.h>
#include <string>
#include <vector>

#include "departure.h"
#include "process.h"
#include "settings.h"
#include "successor_start.h"
#include "wire.h"

namespace zc::migrate {

/** Where a successor is to run. */
struct place {
    std::string name;
    bool is_new = false; /* no rank has been there */
};

/**
 * How a leaver gets a successor. With MPICH's Hydra: by zcm-launch on the host, whose processes
 * each are a world of their own and accept a connection (successor_start.h). Elsewhere: by
 * MPI_Comm_spawn of one process, which does not return if that ends before MPI_Init.
 */
class succession {
  public:
    /** @launcher: of this rank, if it has one; else mpiexec's process manager is asked.
     * @is_started: the successor stands by (standby.h). */
    succession(const settings &chosen, const command &command, wire *launcher, place host,
               bool is_started);

    /** What the other leavers have to know. Throws error. */
    std::string invite(std::uint64_t bytes);
    /**
     * The successor, greeted with @hello, once all leavers' invitations are in @all, by rank.
     * Other leavers may be waited for, but none of them waits in MPI. Throws error.
     */
    std::unique_ptr<departure> start(const std::vector<std::string> &all, greeting hello);

  private:
    MPI_Comm connect(const std::string &port, wire &launcher) const;
    std::string why_not_connected(wire &launcher, const std::string &problem) const;

    const settings &settings_;
    const command &command_;
    const place host_;
    const bool is_started_;
    std::unique_ptr<launch_request> by_; /* none: MPI_Comm_spawn */
    std::unique_ptr<successor_start> start_;
};

/** What a launcher is to start. */
start_order order_of(const command &command);

/** A successor's half: its wire to the launcher that has started it, if one has. */
std::unique_ptr<wire> own_launcher();
/** How a successor has met its leaver. */
struct meeting_of_leaver {
    MPI_Comm between = MPI_COMM_NULL;
    std::string launcher; /* its card, by which it can be asked for more successors; or "" */
};
/** Its connection to the leaver: over a port that the launcher tells it, or the parent. @facts:
 * what the leaver's side hears of this process, a line of preflight.h. Throws error. */
meeting_of_leaver meet_leaver(wire *launcher, const std::string &facts, double limit_s);
/** It has heard go, and is @rank: the launcher, if there is one, need not watch the leaver for it
 * any more, and can name it. */
void hear_go(wire *launcher, int rank);

} // namespace zc::migrate
