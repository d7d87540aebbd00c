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
#include "singleton_manager.h"
#include "wire.h"

namespace zc::migrate {

/** What successors are to be started with; the leaver who has asked for the launcher says it. */
struct start_order {
    std::string program;
    std::vector<std::string> arguments;
    std::string directory;
    std::vector<std::string> environment; /* NAME=VALUE, beside what the launcher has */
    std::vector<calling_card> leavers;    /* one for each successor */

    nlohmann::json to_json() const;
    static start_order from_json(const nlohmann::json &object);
};

/** What mpiexec sends to the process group of this one for the program: ranks are in it, too.
 * Without its clean-up it says by the first that a process has died. */
inline constexpr int kForwarded[] = {SIGUSR1, SIGUSR2, SIGALRM};

/** The variable that tells a successor the descriptor of its wire to the launcher: "fd:N". */
inline constexpr const char *kSuccessorVariable = "ZC_MIGRATE_SUCCESSOR";

/** zcm-launch: carries out what a launcher decides. One thread; signals come by a descriptor. */
class launcher_process final : private launcher_actions {
  public:
    /** @tool: this program, for other hosts. @ranks: shared with the guard (zcm_launch.cpp). */
    launcher_process(const start_order &order, process_manager manager, std::string tool,
                     volatile int *ranks);
    ~launcher_process() override;

    /** Until it is over. Returns the signal by which to end, or 0. */
    int run();

  private:
    struct child {
        pid_t pid = -1;          /* -1: has ended */
        bool left_alone = false; /* killed, as its leaver was gone */
        std::unique_ptr<wire> own, leaver;
        std::unique_ptr<singleton_manager> manager; /* of its world */
    };
    /** A request for the process manager, which answers one after the other. */
    struct errand {
        int child;           /* whose; kOwn: the launcher's */
        std::string request; /* of a child */
        std::string host, card;
    };
    static constexpr int kOwn = -1;

    void start(child &one, const start_order &order);
    void listen_to(std::size_t i);
    void reap();
    void serve(std::size_t i);
    void ask_manager();
    void hear_manager();

    bool change_leaver(std::size_t which, const std::string &card) override;
    void tell_leaver(std::size_t which, const nlohmann::json &what) override;
    void tell_child(std::size_t which, const nlohmann::json &what) override;
    void kill_child(std::size_t which) override;
    void guard_ranks(std::size_t ranks) override { *ranks_ = static_cast<int>(ranks); }
    void spawn(const std::string &host, const std::string &card) override;

    process_manager manager_;
    const std::string tool_;
    volatile int *const ranks_;
    int signals_ = -1;
    std::deque<errand> errands_;
    bool asked_ = false; /* the first of them, and there is no answer yet */
    std::vector<child> children_;
    launcher decides_;
};

} // namespace zc::migrate
