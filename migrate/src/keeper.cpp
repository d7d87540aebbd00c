/* SPDX-License-Identifier: BSD-3-Clause */
#include "keeper.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <string_view>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "end_by_signal.h"
#include "error.h"
#include "host_name.h"

extern char **environ;

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr double kCall = 10; /* seconds at most until the leaver has heard us */
/* Empty, as mpirun takes the keeper for no program of MPI; MPI_Init() waits for such a parent. */
constexpr std::string_view kParent = "OMPI_PARENT_PORT=";

std::vector<std::string> environment_of(const start_order &order, int fd)
{
    std::vector<std::string> all;
    for (char **at = environ; *at; at++)
        if (!std::string_view(*at).starts_with(kParent))
            all.emplace_back(*at);
    set_variables(all, order.environment);
    set_variables(all, {std::string(kSuccessorVariable) + "=fd:" + std::to_string(fd)});
    return all;
}

/** mpirun ends its processes by this, which comes to the keeper, too. */
bool is_told_to_end()
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) == 1;
}

} // namespace

keeper::keeper(const start_order &order) : decides_(1, *this)
{
    if (order.leavers.size() != 1)
        throw error(EINVAL, "mpirun has zcm-launch start one successor, not " +
                                std::to_string(order.leavers.size()));
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    signals_ = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0)
        throw_errno(errno, "signalfd");
    leaver_ = call(order.leavers.front(), "successor", kCall);
    start(order);
}

keeper::~keeper()
{
    kill_child(0);
    close(signals_);
}

void keeper::start(const start_order &order)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw_errno(errno, "socketpair");
    own_ = std::make_unique<wire>(ends[0]);
    const pid_t self = getpid();
    pid_ = fork();
    if (pid_ == 0)
        become_successor(order, self, environment_of(order, ends[1]), {ends[1]});
    close(ends[1]);
    if (pid_ < 0)
        throw_errno(errno, "fork");
}

void keeper::tell_leaver(std::size_t, const json &what)
{
    if (leaver_)
        leaver_->send(what);
}

void keeper::tell_child(std::size_t, const json &what)
{
    own_->send(what);
}

void keeper::kill_child(std::size_t)
{
    is_left_alone_ = !leaver_;
    if (pid_ > 0)
        kill(pid_, SIGKILL);
}

/** mpirun ends all when it sees that this process has ended so. */
void keeper::abort_job(int code)
{
    abort_ = (code & 0xff) != 0 ? code & 0xff : 1;
    kill_child(0);
}

void keeper::hear_child()
{
    while (const auto said = own_->poll()) {
        is_finalized_ |= said->contains("finalized");
        decides_.child_says(0, *said);
    }
}

void keeper::hear_leaver()
{
    hear_child();
    while (leaver_) {
        if (const auto said = leaver_->poll()) {
            decides_.leaver_says(0, *said);
        } else if (leaver_->is_closed()) {
            leaver_.reset();
            hear_child(); /* what it has said before that */
            decides_.leaver_gone(0);
        } else {
            break;
        }
    }
}

/** Of a rank: mpirun is to see how it has ended, as if it had started it. */
void keeper::judge_rank(pid_t pid, int status)
{
    const bool has_failed = status == 0 && !is_finalized_;
    if (abort_ != 0)
        end_ = W_EXITCODE(abort_, 0);
    else
        end_ = has_failed ? W_EXITCODE(1, 0) : status;
    if (abort_ != 0 || is_told_to_end() || (WIFEXITED(status) && !has_failed))
        return; /* it has said so itself, or the user has */
    std::fprintf(stderr, "zcm-launch: %s on %s, process %d, %s%s: the job ends\n",
                 decides_.name_of(0).c_str(), host_name().c_str(), static_cast<int>(pid),
                 has_failed ? "has ended without MPI_Finalize()" : describe_end(status).c_str(),
                 is_left_alone_ ? ", as its predecessor was gone before it had said go" : "");
}

void keeper::reap()
{
    signalfd_siginfo ignored[16];
    while (read(signals_, ignored, sizeof ignored) > 0)
        continue;
    int status = 0;
    if (pid_ <= 0 || waitpid(pid_, &status, WNOHANG) != pid_)
        return;
    const pid_t pid = std::exchange(pid_, -1);
    decides_.child_ends(0);
    hear_leaver(); /* last words first */
    if (decides_.is_rank(0))
        judge_rank(pid, status);
    decides_.child_ended(0, status);
}

int keeper::run()
{
    for (;;) {
        reap();        /* first: a child that has ended is not made the rank */
        hear_leaver(); /* what came with the answer to the call is there already */
        if (decides_.is_over())
            return end_;
        std::vector<pollfd> events{{signals_, POLLIN, 0}};
        if (leaver_)
            events.push_back({leaver_->fd(), POLLIN, 0});
        if (pid_ > 0 && !own_->is_closed())
            events.push_back({own_->fd(), POLLIN, 0});
        poll(events.data(), events.size(), -1);
    }
}

void keep(const std::string &card)
{
    /* What mpirun sends goes to the successor, too: this process lives as long as that. */
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    int status = 0;
    std::unique_ptr<keeper> it;
    try {
        it = std::make_unique<keeper>(ask_for_order(calling_card::from_text(card)));
        status = it->run();
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "zcm-launch: %s\n", problem.what());
        /* A rank that nothing looks after any more is killed: that is no good end. */
        status = it && it->has_rank() ? W_EXITCODE(0, SIGKILL) : 0;
    }
    it.reset();
    if (WIFSIGNALED(status))
        end_by_signal(WTERMSIG(status));
    if (status != 0)
        _exit(WEXITSTATUS(status));
}

} // namespace zc::migrate
