/* SPDX-License-Identifier: BSD-3-Clause */
#include "held_moves.h"

#include <cerrno>
#include <chrono>
#include <poll.h>
#include <utility>

#include "error.h"
#include "moves_together.h"
#include "zch/held_ranks.h"
#include "zch/ports.h"

namespace zc::agent {
namespace {

constexpr std::chrono::seconds kAnswers{3}; /* one that listens */

bool is_readable(int fd)
{
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, 0) > 0;
}

/** One rank, so one thread; another rank of its job may be in the way, which ends. */
class attempts final : public control::rank_mover {
  public:
    attempts(holder::held_ranks &ranks, holder::held_rank which, std::string to, double end_s,
             int stop)
        : ranks_(ranks), which_(std::move(which)), to_(std::move(to)), end_s_(end_s), stop_(stop)
    {
    }
    control::attempt move(std::size_t, control::departure &) override
    {
        const auto left = std::chrono::duration<double>(end_s_ - now_s());
        said_ = ranks_.move(which_, to_, std::chrono::ceil<std::chrono::milliseconds>(left),
                            [this] { return is_readable(stop_); });
        /* Where others were promised the memory another host may have some: its agent decides. */
        const bool again = said_.again && !said_.other_host && !is_readable(stop_);
        return {said_.ok, again, said_.why};
    }
    /** Not longer than the agent lives. */
    void wait(double seconds) override
    {
        pollfd one{stop_, POLLIN, 0};
        poll(&one, 1, static_cast<int>(seconds * 1000));
    }
    const holder::held_move &said() const { return said_; }

  private:
    holder::held_ranks &ranks_;
    holder::held_rank which_;
    std::string to_;
    double end_s_;
    int stop_;
    holder::held_move said_;
};

} // namespace

void tell(const holder::held_move &said, msg::outcome &o)
{
    o.bytes = said.copied + said.bytes;
    const double phases[kPhases] = {said.leave_ms,   said.dump_ms, 0, said.copy_ms + said.send_ms,
                                    said.restore_ms, said.bind_ms};
    for (std::size_t i = 0; i < kPhases; i++)
        o.phase_ms[i] = static_cast<float>(phases[i]);
}

held_moves::held_moves(std::string key_file, double timeout_s)
    : key_file_(std::move(key_file)), timeout_s_(timeout_s)
{
}

held_moves::~held_moves()
{
    end();
}

void held_moves::ask(const msg::ask &wanted, const held_errand &what)
{
    begin(wanted, [this, wanted, what] { return carry_out(wanted, what); });
}

msg::outcome held_moves::carry_out(const msg::ask &wanted, const held_errand &what)
{
    msg::outcome o{wanted.txn, wanted.job, msg::verdict::failed, wanted.epoch, 0, {}, ""};
    const std::string target = holder::listener_at(what.target_place);
    try {
        holder::held_ranks ranks(key_file_);
        if (!ranks.listens(target, kAnswers)) {
            o.reason =
                printable("no zc-hold --listen answers at " + target + ", or it has another key");
            return o;
        }
        holder::held_rank which;
        which.pid = what.origin.pid;
        which.home = what.origin.home;
        o.what = msg::verdict::refused;
        if (!what.origin_place.empty()) {
            which.asked_at = holder::listener_at(what.origin_place);
            if (!ranks.listens(which.asked_at, kAnswers)) {
                o.reason = printable("no zc-hold --listen answers at " + which.asked_at +
                                     ", where its zc-hold is, or it has another key");
                return o;
            }
        }
        attempts by(
            ranks, which, target,
            std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
                    .count() +
                timeout_s_,
            stop_fd());
        const control::rank_outcome became =
            control::move_together(by, 1, {.timeout_s = timeout_s_}).front();
        o.what = became.moved           ? msg::verdict::moved
                 : by.said().other_host ? msg::verdict::failed
                                        : msg::verdict::refused;
        o.reason = printable(became.why);
        tell(by.said(), o);
    } catch (const error &problem) {
        if (problem.code() == ETIMEDOUT)
            o.what = msg::verdict::timed_out;
        o.reason = printable(problem.what());
    } catch (const std::exception &problem) {
        o.reason = printable(problem.what());
    }
    return o;
}

} // namespace zc::agent
