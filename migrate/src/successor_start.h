/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher_process.h"
#include "process_manager.h"
#include "wire.h"

namespace zc::migrate {

inline constexpr const char *kNotStarted =
    "mpiexec has not started zcm-launch there, or it cannot call back";

/** By whom a rank has zcm-launch started on a host. */
class launch_request {
  public:
    virtual ~launch_request() = default;
    /** @leavers: of all successors there; the first is the asking process, whom the launcher that
     * is new there calls. "" or what is wrong at once. */
    virtual std::string ask(const std::string &host, const std::vector<calling_card> &leavers) = 0;
    /** True once the answer for @host has come, with @problem, "" if it is done. Does not block. */
    virtual bool answer(const std::string &host, std::string &problem) = 0;
    /** What it means that no launcher calls from @host. */
    virtual std::string is_late(const std::string & /*host*/) const { return kNotStarted; }
};

/** A process that mpiexec started: by its process manager. */
class launch_by_manager final : public launch_request {
  public:
    launch_by_manager(process_manager manager, std::string tool)
        : manager_(std::move(manager)), tool_(std::move(tool))
    {
    }
    std::string ask(const std::string &host, const std::vector<calling_card> &leavers) override
    {
        return manager_.ask(host, tool_, leavers.front().to_text());
    }
    bool answer(const std::string &, std::string &problem) override
    {
        return manager_.answer(problem);
    }

  private:
    process_manager manager_;
    std::string tool_;
};

/** A successor: by its launcher, which asks in its name. */
class launch_by_launcher final : public launch_request {
  public:
    explicit launch_by_launcher(wire &launcher) : launcher_(launcher) {}
    std::string ask(const std::string &host, const std::vector<calling_card> &leavers) override;
    bool answer(const std::string &host, std::string &problem) override;

  private:
    wire &launcher_;
    std::map<std::string, std::string> answers_; /* by host; of those that were asked for here */
    std::set<std::string> asked_;
};

/**
 * How a leaver gets its successor: all leavers invite, everyone hears all invitations, and the
 * first of those whose ranks go to a host has one launcher started there, which starts the
 * successors of them all, and calls each leaver.
 *
 *     leaver 1 ── invitation ─┬─▶ asks for a launcher ─▶ order ─▶ zcm-launch ─▶ successors 1', 2'
 *     leaver 2 ── invitation ─┘                                      │  call ─▶ leaver 1, leaver 2
 *                                                                    └─ port, or how it has ended
 *
 *     wanted ──▶ called ──▶ ready: it goes in steps that do not block
 *
 * Where the successors have been started before (standby.h), their launchers call all the same, and
 * nothing is asked for.
 */
class successor_start {
  public:
    /** Throws error where no call can be received. @bytes: of state, that go to @host. */
    successor_start(std::string host, std::uint64_t bytes);

    std::string invitation() const;

    struct started {
        std::unique_ptr<wire> launcher; /* closed when the successor's launcher has ended */
        std::string port;               /* of MPI, where the successor accepts once it is told to */
        std::string facts;              /* of its process: a line of preflight.h */
    };
    /**
     * @all: invitations, by rank; "" of those who stay. @order: for all of them, but whose they
     * are. @by: null where successors have been started before. @limit_s: seconds for the launcher
     * to call, and again for the successor to be ready. Throws error.
     */
    void begin(const std::vector<std::string> &all, start_order order, launch_request *by,
               double limit_s);
    /** True once it has been started. Throws error. */
    bool step();
    started take() { return std::move(started_); }
    /** All of that; @rest is called meanwhile. */
    started run(const std::vector<std::string> &all, start_order order, launch_request *by,
                double limit_s, const std::function<void()> &rest);

    /** That go to this one's host, by all of @all together. */
    std::uint64_t bytes_of(const std::vector<std::string> &all) const;

  private:
    enum class state { wanted, called, ready };

    void await_call();
    void await_port();

    std::string host_;
    std::uint64_t bytes_;
    call_receiver calls_;
    state state_ = state::wanted;
    start_order order_;
    launch_request *by_ = nullptr; /* has been asked */
    bool awaits_answer_ = false;   /* of it */
    double limit_s_ = 0, since_ = 0;
    started started_;
};

} // namespace zc::migrate
