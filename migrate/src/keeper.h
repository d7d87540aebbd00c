/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <string>
#include <sys/types.h>

#include "launcher.h"
#include "successor_program.h"
#include "wire.h"

namespace zc::migrate {

/** The variable by which the rank that wants a successor tells zcm-launch how it is called. */
inline constexpr const char *kCallVariable = "ZC_MIGRATE_CALL";

/**
 * What zcm-launch is to Open MPI's mpirun: the parent of one successor, in whose stead it is the
 * process that mpirun knows and whose end ends the job.
 *
 *     leaver ── MPI_Comm_spawn ──▶ mpirun ──▶ its daemon ──▶ keeper ── fork ──▶ successor
 *        └──────────── wire ─────────────────────────────────┘        PMIx, as the keeper's process
 *
 * It has no connection to mpirun, so the successor takes its place there: it is the process of the
 * number that the keeper has been given, and what mpirun sends by a signal goes to both, as they
 * are one process group. Before go it ends well, however the successor has ended, and tells the
 * leaver how; after go it ends as the rank has. One thread.
 */
class keeper final : private launcher_actions {
  public:
    /** Calls the leaver, the only one of @order, and starts its successor. Throws error. */
    explicit keeper(const start_order &order);
    ~keeper() override;

    /** Until it is over. Returns the status, as of waitpid(), with which to end. */
    int run();
    /** Is the successor the rank, or about to be? */
    bool has_rank() const { return pid_ > 0 && decides_.is_rank(0); }

  private:
    void start(const start_order &order);
    void hear_child();
    void hear_leaver();
    void reap();
    void judge_rank(pid_t pid, int status);

    bool change_leaver(std::size_t, const std::string &) override { return false; }
    void tell_leaver(std::size_t, const nlohmann::json &what) override;
    void tell_child(std::size_t, const nlohmann::json &what) override;
    void kill_child(std::size_t) override;
    void guard_ranks(std::size_t) override {}
    void abort_job(int code) override;
    void spawn(const std::string &, const std::string &) override {}

    int signals_ = -1;
    pid_t pid_ = -1; /* of the successor; -1: it has ended */
    std::unique_ptr<wire> own_, leaver_;
    bool is_finalized_ = false; /* its MPI: it may end */
    bool is_left_alone_ = false;
    int abort_ = 0; /* with what a rank has the job end; 0: it has not */
    int end_ = 0;
    launcher decides_;
};

/** zcm-launch, where mpirun has started it for the rank of @card. Returns only where there is
 * nothing for mpirun to end the job for. */
void keep(const std::string &card);

} // namespace zc::migrate
