/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "request.h"
#include "successor_start.h"

namespace zc::migrate {

/**
 * The successors of a move that have been started before the ranks meet, while these compute. Rank
 * 0 has them started by its launcher, and is their leaver until the real ones are known:
 *
 *     rank 0 ──▶ launchers of all hosts ──▶ successors come to zcm_init(), and report ──▶ stand by
 *            the ranks meet, and each leaver invites ──▶ introduce: each successor has its leaver
 *
 * Successors that were not introduced end when this object does. Used by one thread at a time.
 */
class standby {
  public:
    /** Throws error where no call can be received. */
    explicit standby(const std::vector<control::request::target> &moves);
    standby(const standby &) = delete;
    standby &operator=(const standby &) = delete;

    /**
     * Until all stand by; @rest, which is called meanwhile, may throw. @limit_s: as
     * successor_start::begin() has it. Throws error.
     */
    void start(const start_order &order, launch_request &by, double limit_s,
               const std::function<void()> &rest);
    /** Where the start() that threw has gone wrong; "" if that is of no host. */
    const std::string &failed_on() const noexcept { return failed_on_; }

    /** Of each successor: its rank, its host, and the line in which it has reported. */
    struct report {
        int rank;
        std::string host, facts;
    };
    std::vector<report> reports() const;

    /** They are not needed: those that are not introduced end. */
    void dismiss() { all_.clear(); }

    /** @invitations: of all leavers, by rank; "" of one that could not. @own_rank: of this process,
     * which may leave, too. Returns when the launchers have called the others, and tells those
     * whose launcher has ended; @rest is called meanwhile. Throws error. */
    void introduce(const std::vector<std::string> &invitations, int own_rank,
                   const std::function<void()> &rest);

  private:
    struct one {
        explicit one(control::request::target which) : what(std::move(which)), start(what.host, 0)
        {
        }
        control::request::target what;
        successor_start start;
        successor_start::started started;
    };

    std::vector<std::unique_ptr<one>> all_;
    std::string failed_on_;
};

} // namespace zc::migrate
