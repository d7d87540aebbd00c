/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <csignal>
#include <deque>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

#include "launcher.h"
#include "process_manager.h"
#include "rank_count.h"
#include "singleton_manager.h"
#include "successor_program.h"
#include "wire.h"

namespace zc::migrate {

/** Ends this process, a launcher, so that what waits for it ends by @signal (0: none) in its stead.
 * It does not do so itself: then it was killed. */
[[noreturn]] void end_launcher(int signal);

/** By which signal to end for launcher @pid, which has ended with @status; 0: by none. It has said
 * why, unless it was killed: then this does. @has_ranks: they have ended with it. */
int signal_of_launcher(pid_t pid, int status, bool has_ranks);

/** Why rank 0 calls a launcher: it is to start successors. The object that follows has the cards of
 * those who leave, and the answer what is wrong, "" if nothing is. */
inline constexpr const char *kStartCall = "start";

/** Closes all descriptors but standard ones and @kept: those of others are known by their end. */
void close_all_but(std::vector<int> kept);

/**
 * zcm-launch: carries out what a launcher decides. One thread; signals come by a descriptor.
 *
 * The one that the process manager has started is the first on its host. It can be called there to
 * start more of what it was started for, and nothing else, as its card goes over the network in
 * clear text. For them it makes a launcher of its own, whose process manager and guard it is, so
 * that what goes wrong before go costs no rank that is there:
 *
 *     mpiexec ── proxy ── guard ── first ─┬─ ranks
 *                                         └─ nested ── successors, then ranks
 */
class launcher_process final : private launcher_actions {
  public:
    /** @tool: this program, for other hosts. @ranks: for who waits for the end of this process.
     * @first: the card of the first launcher here; "" if that is this one. Throws error. */
    launcher_process(const start_order &order, process_manager manager, std::string tool,
                     rank_count &ranks, const std::string &first = "");
    ~launcher_process() override;

    /** Until it is over. Returns the signal by which to end, or 0. */
    int run();

  private:
    struct child {
        pid_t pid = -1;          /* -1: has ended */
        bool left_alone = false; /* killed, as its leaver was gone */
        std::unique_ptr<wire> own, leaver;
        std::shared_ptr<singleton_manager> manager; /* of its world */
    };
    struct nested {
        pid_t pid;
        std::shared_ptr<singleton_manager> manager;
        std::unique_ptr<rank_count> ranks;
    };
    /** A request for the process manager, which answers one after the other. */
    struct errand {
        std::shared_ptr<singleton_manager> whose; /* null: the launcher's */
        std::string request;                      /* of another */
        std::string host, card;
    };

    void start(child &one);
    void answer_callers();
    void nest(const std::vector<calling_card> &leavers, std::unique_ptr<wire> caller);
    [[noreturn]] void be_nested(const std::vector<calling_card> &leavers,
                                std::unique_ptr<wire> caller, int manager,
                                rank_count &ranks) const noexcept;
    int signal() const noexcept { return lost_ ? lost_ : decides_.signal(); }
    bool is_over() const noexcept { return signal() || (decides_.is_over() && nested_.empty()); }
    void listen_to(std::size_t i);
    void reap();
    void child_ended(std::size_t i, int status);
    void serve(const std::shared_ptr<singleton_manager> &manager, bool of_ranks);
    void abort(singleton_manager &whose, const std::string &request, bool of_ranks);
    void ask_manager();
    void hear_manager();

    bool change_leaver(std::size_t which, const std::string &card) override;
    void tell_leaver(std::size_t which, const nlohmann::json &what) override;
    void tell_child(std::size_t which, const nlohmann::json &what) override;
    void kill_child(std::size_t which) override;
    void guard_ranks(std::size_t ranks) override { ranks_.set_own(static_cast<int>(ranks)); }
    void abort_job(int code) override;
    void spawn(const std::string &host, const std::string &card) override;

    const start_order order_;
    process_manager manager_;
    const std::string tool_;
    rank_count &ranks_;
    int signals_ = -1;
    std::deque<errand> errands_;
    bool asked_ = false; /* the first of them, and there is no answer yet */
    std::vector<child> children_;
    std::unique_ptr<call_receiver> calls_;       /* of the first launcher on a host */
    const std::string first_;                    /* its card */
    std::vector<std::unique_ptr<wire>> callers_; /* they have not said yet who leaves */
    std::vector<nested> nested_;
    int lost_ = 0; /* the signal of a nested launcher that had ranks */
    launcher decides_;
};

} // namespace zc::migrate
