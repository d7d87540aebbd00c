/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <sys/types.h>
#include <thread>

#include "request.h"

namespace zc::migrate {

class standby;

using control::refusal;
using control::request;

/**
 * The socket by which requests reach a job: a thread of rank 0. Owner only: its
 * directory is 0700, the socket 0600, and the peer's user is asked of the kernel.
 *
 * One request at a time: take() → the job carries it out → finish(). Another one
 * meanwhile is refused with EBUSY, one after close_door() with its reason, a move for
 * another epoch than that of the status with ESTALE.
 *
 * Whoever asks has an answer within @patience_s: ETIMEDOUT, if by then rank 0 has not taken
 * the request, or soon after if it does not hold() it. What was not taken is withdrawn.
 */
class control_server {
  public:
    /**
     * Takes the place of an older socket of that name. A second thread calls @examine, which may
     * throw error to refuse a request and take its time, and has successors stand by for it (or
     * none); then it calls @arrived.
     */
    control_server(const std::string &directory, const std::string &job, int ranks,
                   double patience_s, std::uint64_t epoch,
                   const std::atomic<std::int64_t> &safe_points,
                   std::function<std::shared_ptr<standby>(const request &)> examine,
                   std::function<void()> arrived);
    ~control_server();
    control_server(const control_server &) = delete;
    control_server &operator=(const control_server &) = delete;

    /** Why no socket can be made in @directory, which is tried; "" if one can. */
    static std::string why_not_in(const std::string &directory);

    const std::string &path() const noexcept { return path_; }

    /** JSON object: the answer to "status", but for the number of safe points; EBUSY until then. */
    void set_status(std::string text, std::uint64_t epoch);
    /** A request of the program itself; its outcome is not sent to anyone. */
    bool submit(const request &wanted);
    struct taken {
        request wanted;
        std::shared_ptr<standby> successors; /* may be null; of use while the request is held */
    };
    /** The request that waits to be carried out. */
    std::optional<taken> take();
    /** Rank 0 will answer, soon: false if it is too late. */
    bool hold();
    /** It has been put off. */
    void release();
    /** Any thread: the outcome of what take() returned, as JSON text. */
    void finish(const std::string &outcome);
    /** Any thread: the same, of what is not over yet: finish() answers nothing then. */
    void answer_early(const std::string &outcome);
    /** Requests that were given up as functions of the program did not return. */
    void set_late_functions(std::int64_t count);
    /** Refuse everything from now on. */
    void close_door(const std::string &why);

  private:
    /* examining: whether it can be carried out, by a thread of its own. */
    enum class state { idle, examining, waiting, running };

    void serve();
    void answer(int client);
    void handle(int client, const std::string &line);
    void examine(const request &wanted);
    void settle_locked(const std::string &reply);
    std::string why_not_locked(const request &wanted) const;
    void expire();

    std::string path_;
    int ranks_;
    const std::atomic<std::int64_t> &safe_points_;
    std::function<std::shared_ptr<standby>(const request &)> examine_;
    std::function<void()> arrived_;
    int listener_ = -1;
    int wake_ = -1;
    ino_t inode_ = 0;
    std::mutex mutex_;
    double patience_s_;
    std::uint64_t epoch_;
    double asked_ = 0;     /* when request_ came */
    bool held_ = false;    /* it will be answered */
    bool expired_ = false; /* it has been answered: too late */
    std::string status_;
    std::int64_t late_functions_ = 0;
    std::string closed_;
    state state_ = state::idle;
    request request_;
    std::shared_ptr<standby> successors_; /* of request_ */
    int client_ = -1;                     /* who asked for request_ */
    std::thread thread_, examiner_;
};

} // namespace zc::migrate
