/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "allowed_hosts.h"
#include "control_server.h"
#include "neighbours.h"
#include "preflight.h"
#include "process.h"
#include "request.h"
#include "request_source.h"
#include "settings.h"
#include "standby.h"
#include "wire.h"

namespace zc::migrate {

/** Where a rank runs, as ranks tell each other. */
struct whereabouts {
    char host[128];
    int pid;
    std::uint64_t features;  /* of the processor */
    std::uint64_t libraries; /* stands for what the process has loaded; 0: that is not compared */
    char launcher[512];      /* the card of its launcher; "" if it has none */
};

/**
 * What rank 0 has for those who ask something of the job: the socket, and the request that is
 * being carried out. The other ranks never open theirs: they are asked nothing, and what they
 * say here goes to nobody.
 */
class job_control final : public request_source {
  public:
    /** @command: what successors run. @ring: called by any thread when there is a request. */
    job_control(const settings &settings, const command &command, const allowed_hosts &allowed,
                std::function<void()> ring);

    /** Where no socket can be made that is said, and the job cannot be asked. */
    /** @launcher: of this rank, and from now on used here only; null if it has none. */
    void open(const std::string &job, int ranks, std::uint64_t epoch,
              const std::atomic<std::int64_t> &safe_points, wire *launcher);
    /** Why it could not be opened on this host; "" if it could. */
    std::string why_not_open() const;
    bool is_open() const noexcept { return server_ != nullptr; }
    void set_status(const std::string &job, std::int64_t moves, std::uint64_t epoch,
                    const std::vector<whereabouts> &ranks);
    /** What each rank's process has loaded, in to_text() of loaded_libraries; "" where it is what
     * an earlier one with the same whereabouts::libraries has. A request that is examined before,
     * while a job or a new rank 0 begins, is compared by those that leave alone. */
    void set_libraries(const std::vector<whereabouts> &ranks,
                       const std::vector<std::string> &texts);
    /** Refuse everything from now on. */
    void close_door(const std::string &why);
    void close();

    /** A request of the program itself; false if another one is under way. */
    bool submit(const request &wanted);
    bool take() override;
    /** What has been taken and is not finished. */
    const std::optional<control_server::taken> &taken() const noexcept { return taken_; }
    double asked() const noexcept override { return asked_.load(); }
    double examined() const noexcept override { return examined_.load(); }
    /** A move's successors have told how much memory their hosts have. */
    bool weighs() const override;
    std::string too_heavy(const std::vector<std::int64_t> &bytes) const override;
    /** What this process has found out of itself. */
    const preflight &own() const noexcept { return needed_; }
    /** The same, and what it has loaded by now. */
    preflight own_now() const;
    /** The ranks' processors have no others than these: the program may need them. */
    void need_features(std::uint64_t features) { features_ &= features; }
    std::uint64_t features() const noexcept { return features_; }
    bool hold() override;
    /** It has been put off. */
    void release();
    /** It is over: whoever asked hears @outcome. */
    void finish(const std::string &outcome) override;
    /** The job is done with it, and another thread answers it later, if there was one. */
    bool defer();
    /** Any thread: it will be over, with @outcome, but not soon. */
    void answer_early(const std::string &outcome);
    /** Requests that were given up as functions of the program did not return. */
    void set_late_functions(std::int64_t count);
    void answer_deferred(const std::string &outcome);

  private:
    std::shared_ptr<standby> examine(const request &wanted);
    /** Whose successors come to a host, and so have to have the libraries of these. */
    using leavers = std::vector<int>;
    void examine_host(const std::string &host, const leavers &from, bool runs) const;
    void ask_why(const std::string &host, const leavers &from, bool has_answered) const;
    /** By host; null where the process manager has to start one. */
    using launchers = std::map<std::string, std::unique_ptr<wire>>;
    std::unique_ptr<wire> reach(const std::string &host, const leavers &from, bool is_to_start);
    std::shared_ptr<standby> have_successors(const request &wanted, launchers there);
    preflight examine_facts(const std::string &host, const leavers &from,
                            const std::string &said) const;
    void examine_libraries(const std::string &host, const leavers &from,
                           const loaded_libraries &found) const;
    void say_once(const std::string &text) const;

    const settings &settings_;
    const command &command_;
    wire *launcher_ = nullptr;
    neighbours neighbours_;
    std::atomic<bool> closing_{false};
    bool has_waited_for_test_ = false; /* the thread of the socket's */
    const allowed_hosts &allowed_;     /* does not change while the socket is open */
    std::function<void()> ring_;
    std::optional<control_server::taken> taken_;
    std::atomic<double> asked_{0}, examined_{0};
    preflight needed_; /* of a host, but for its features */
    std::atomic<std::uint64_t> features_{~std::uint64_t{0}};
    /* By rank; those that have the same share it. Null: not compared. */
    using libraries_by_rank = std::vector<std::shared_ptr<const loaded_libraries>>;
    std::shared_ptr<const libraries_by_rank> libraries() const;
    mutable std::mutex libraries_guard_; /* the thread that examines requests reads them */
    std::shared_ptr<const libraries_by_rank> libraries_ =
        std::make_shared<const libraries_by_rank>();
    /* On the hosts of the request that was examined last, in bytes, as their successors have told.
     */
    std::map<std::string, std::uint64_t> room_;
    mutable std::mutex said_guard_; /* several hosts are examined at once */
    mutable std::set<std::string> said_;
    std::unique_ptr<control_server> server_;
};

} // namespace zc::migrate
