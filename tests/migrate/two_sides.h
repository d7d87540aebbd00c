/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "connection.h"

namespace zc::migrate {

/**
 * Two processes at the ends of a connection in memory. They take turns: one runs until it has to
 * wait, so that all runs are alike; and while both wait time passes, without taking any.
 */
class two_sides {
  public:
    enum side : int { leaver, successor };

    struct message {
        int kind = 0;
        std::vector<std::byte> bytes;
    };
    /** What becomes of a message; as many as are to arrive. */
    using network =
        std::function<std::vector<message>(side from, std::size_t number, message sent)>;

    /** A process that the test has ended. */
    struct killed : std::runtime_error {
        killed() : runtime_error("killed") {}
    };
    /** A wait that no time limit has ended. */
    struct hangs : std::runtime_error {
        hangs() : runtime_error("waits for ever") {}
    };

    two_sides();
    ~two_sides();
    two_sides(const two_sides &) = delete;
    two_sides &operator=(const two_sides &) = delete;

    void through(network it) { network_ = std::move(it); }
    /** End @who when it sends, receives or begins to receive the @at-th time. */
    void kill(side who, std::size_t at);

    /** The other side's end is told to each as @how, so many seconds after the network has failed;
     * "": it is not told, after all. */
    void tell_end(std::string how, double after_s)
    {
        end_ = std::move(how);
        told_after_s_ = after_s;
    }

    std::unique_ptr<connection> end_of(side who);
    /** Until both have returned; what one throws is in problem(). */
    void run(const std::function<void()> &leaving, const std::function<void()> &succeeding);
    const std::string &problem(side who) const { return sides_[who].problem; }
    bool hung() const { return hung_; }

    /** What was sent, by each. */
    const std::vector<message> &sent(side who) const { return sides_[who].sent; }
    /** How often it has sent, received or begun to receive. */
    std::size_t steps(side who) const { return sides_[who].steps; }

  private:
    class endpoint;
    struct on_its_way {
        message what;
        std::size_t number; /* of the send that waits for its being received */
    };
    struct state {
        std::vector<message> sent;
        std::deque<on_its_way> coming;
        std::vector<bool> taken; /* of what it has sent */
        std::size_t steps = 0;
        std::size_t dies_at = ~std::size_t{0};
        bool ended = false;
        std::string problem;
    };

    void play(side who, const std::function<void()> &part);
    void yield(side who);
    void await_turn(std::unique_lock<std::mutex> &lock, side who);

    network network_;
    std::array<state, 2> sides_;
    std::mutex mutex_;
    std::condition_variable changed_;
    side turn_ = leaver;
    double now_ = 0;
    std::string end_;
    double told_after_s_ = -1; /* it is not told */
    bool hung_ = false;
};

} // namespace zc::migrate
