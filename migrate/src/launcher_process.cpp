/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "host_name.h"
#include "successor_program.h"

extern char **environ;

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr double kCall = 10; /* seconds at most until a leaver has heard us */
constexpr int kEndsBy = 128; /* and the signal: a launcher's exit status */

/** The answer to what a rank, or a nested launcher, wants of a process manager that there is not.
 */
std::string no_manager(const std::string &request)
{
    return std::string(request.starts_with("mcmd=spawn") ? "cmd=spawn_result" : "cmd=result") +
           " rc=-1 msg=no_process_manager";
}

/** To be called is of use, and no more: without it successors come as to a host without ranks. */
std::unique_ptr<call_receiver> receiver_if_possible()
{
    try {
        return std::make_unique<call_receiver>();
    } catch (const error &problem) {
        std::fprintf(stderr, "zcm-launch: cannot be called here, where ranks are: %s\n",
                     problem.what());
        return nullptr;
    }
}

/** Of the process manager, whose process a successor is not. */
bool is_the_managers(const char *variable)
{
    for (const char *prefix : {"PMI_", "PMIX_", "HYDI_", "HYD_", "MPI_LOCAL", "MPIR_LOCAL"})
        if (std::strncmp(variable, prefix, std::strlen(prefix)) == 0)
            return true;
    return false;
}

/** @fd: the wire to the launcher. @manager: PMI_FD. */
std::vector<std::string> environment_of(const start_order &order, int fd, int manager)
{
    std::vector<std::string> all;
    for (char **at = environ; *at; at++)
        if (!is_the_managers(*at))
            all.emplace_back(*at);
    set_variables(all, order.environment);
    set_variables(all, {std::string(kSuccessorVariable) + "=fd:" + std::to_string(fd),
                        "PMI_FD=" + std::to_string(manager), "PMI_RANK=0", "PMI_SIZE=1"});
    return all;
}

} // namespace

void close_all_but(std::vector<int> kept)
{
    std::ranges::sort(kept);
    unsigned next = 3;
    for (const int fd : kept) {
        if (const auto at = static_cast<unsigned>(fd); at >= next) {
            if (at > next)
                close_range(next, at - 1, 0);
            next = at + 1;
        }
    }
    close_range(next, ~0u, 0);
}

void end_launcher(int signal)
{
    _exit(signal ? kEndsBy + signal : 0);
}

int signal_of_launcher(pid_t pid, int status, bool has_ranks)
{
    if (WIFEXITED(status))
        return std::max(WEXITSTATUS(status) - kEndsBy, 0);
    if (!WIFSIGNALED(status) || !has_ranks)
        return 0;
    std::fprintf(stderr, "zcm-launch: a launcher of ranks, process %d, %s: the job ends\n",
                 static_cast<int>(pid), describe_end(status).c_str());
    return WTERMSIG(status);
}

launcher_process::launcher_process(const start_order &order, process_manager manager,
                                   std::string tool, rank_count &ranks, const std::string &first)
    : order_(order), manager_(std::move(manager)), tool_(std::move(tool)), ranks_(ranks),
      children_(order.leavers.size()), calls_(first.empty() ? receiver_if_possible() : nullptr),
      first_(calls_ ? calls_->card().to_text() : first), decides_(order.leavers.size(), *this)
{
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ended, nullptr);
    signals_ = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0)
        throw_errno(errno, "signalfd");
    for (std::size_t i = 0; i < children_.size(); i++)
        children_[i].leaver = call(order.leavers[i], "successor", kCall);
    for (child &one : children_)
        start(one);
}

launcher_process::~launcher_process()
{
    for (const child &one : children_)
        if (one.pid > 0)
            kill(one.pid, SIGKILL);
    for (const nested &one : nested_)
        kill(one.pid, SIGKILL);
    close(signals_);
}

void launcher_process::start(child &one)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw_errno(errno, "socketpair");
    one.own = std::make_unique<wire>(ends[0]);
    int managed[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, managed) != 0) {
        const int code = errno;
        close(ends[1]);
        throw_errno(code, "socketpair");
    }
    one.manager = std::make_shared<singleton_manager>(managed[0]);
    const pid_t self = getpid();
    one.pid = fork();
    if (one.pid == 0)
        become_successor(order_, self, environment_of(order_, ends[1], managed[1]),
                         {ends[1], managed[1]});
    close(ends[1]);
    close(managed[1]);
    if (one.pid < 0)
        throw_errno(errno, "fork");
    one.own->send({{"card", first_}});
}

/** Rank 0 wants successors on this host, where ranks are already. */
void launcher_process::answer_callers()
{
    std::string why;
    while (auto caller = calls_ ? calls_->poll(why) : nullptr)
        if (why == kStartCall)
            callers_.push_back(std::move(caller));
    std::erase_if(callers_, [this](std::unique_ptr<wire> &caller) {
        const auto said = caller->poll();
        if (!said)
            return caller->is_closed();
        try {
            std::vector<calling_card> leavers;
            for (const std::string &text : said->at("leavers").get<std::vector<std::string>>())
                leavers.push_back(calling_card::from_text(text));
            nest(leavers, std::move(caller));
        } catch (const std::exception &problem) {
            std::fprintf(stderr, "zcm-launch: %s\n", problem.what());
        }
        return true;
    });
}

/** Where this throws the caller finds its wire closed. */
void launcher_process::nest(const std::vector<calling_card> &leavers, std::unique_ptr<wire> caller)
{
    auto ranks = std::make_unique<rank_count>(&ranks_);
    int managed[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, managed) != 0)
        throw_errno(errno, "socketpair");
    auto manager = std::make_shared<singleton_manager>(managed[0]);
    const pid_t self = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            _exit(1);
        be_nested(leavers, std::move(caller), managed[1], *ranks);
    }
    close(managed[1]);
    if (pid < 0)
        throw_errno(errno, "fork");
    nested_.push_back({pid, std::move(manager), std::move(ranks)});
}

/** In the child, which has nothing of its parent's but these. */
void launcher_process::be_nested(const std::vector<calling_card> &leavers,
                                 std::unique_ptr<wire> caller, int manager,
                                 rank_count &ranks) const noexcept
{
    close_all_but({caller->fd(), manager});
    start_order order = order_;
    order.leavers = leavers;
    int signal = 0;
    try {
        launcher_process it(order, process_manager(manager), tool_, ranks, first_);
        caller->send({{"problem", ""}});
        caller.reset();
        signal = it.run();
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "zcm-launch: %s\n", problem.what());
        if (caller)
            caller->send({{"problem", problem.what()}});
        signal = ranks.get() ? SIGKILL : 0;
    }
    end_launcher(signal);
}

bool launcher_process::change_leaver(std::size_t which, const std::string &card)
{
    try {
        std::unique_ptr<wire> fresh = call(calling_card::from_text(card), "successor", kCall);
        if (children_[which].leaver)
            children_[which].leaver->send({{"introduced", true}});
        children_[which].leaver = std::move(fresh);
        return true;
    } catch (const error &) {
        children_[which].leaver.reset();
        return false;
    }
}

void launcher_process::tell_leaver(std::size_t which, const json &what)
{
    if (children_[which].leaver)
        children_[which].leaver->send(what);
}

void launcher_process::tell_child(std::size_t which, const json &what)
{
    children_[which].own->send(what);
}

void launcher_process::kill_child(std::size_t which)
{
    children_[which].left_alone = !children_[which].leaver;
    if (children_[which].pid > 0)
        kill(children_[which].pid, SIGKILL);
}

/** What it answers, if there is one, is that it ends all; else the rank ends by itself. */
void launcher_process::abort_job(int code)
{
    (void)manager_.forward("cmd=abort exitcode=" + std::to_string(code) + "\n");
}

void launcher_process::spawn(const std::string &host, const std::string &card)
{
    errands_.push_back({nullptr, "", host, card});
    ask_manager();
}

/** What the MPI of a rank, or a nested launcher, wants of its process manager. */
void launcher_process::serve(const std::shared_ptr<singleton_manager> &manager, bool of_ranks)
{
    while (manager && !manager->is_closed()) {
        const auto request = manager->poll();
        if (!request)
            break;
        if (singleton_manager::is_abort(*request)) {
            abort(*manager, *request, of_ranks);
            continue;
        }
        errands_.push_back({manager, *request, "", ""});
        ask_manager();
    }
}

/** The process manager ends the job of a rank, with what it has handed to MPI_Abort(), and waits
 * for no errand before that. A process that is no rank yet ends by itself, and the move with it. */
void launcher_process::abort(singleton_manager &whose, const std::string &request, bool of_ranks)
{
    if (!of_ranks || !manager_.forward(request).empty())
        whose.let_end();
}

void launcher_process::ask_manager()
{
    while (!asked_ && !errands_.empty()) {
        const errand next = errands_.front();
        const std::string problem =
            next.whose ? manager_.forward(next.request) : manager_.ask(next.host, tool_, next.card);
        asked_ = problem.empty();
        if (asked_)
            return;
        errands_.pop_front();
        if (next.whose)
            next.whose->answer(no_manager(next.request));
        else
            decides_.spawned(problem);
    }
}

void launcher_process::hear_manager()
{
    const std::shared_ptr<singleton_manager> whose = errands_.front().whose;
    const std::string request = errands_.front().request;
    std::string problem;
    std::optional<std::string> line;
    if (whose ? !(line = manager_.reply()) : !manager_.answer(problem))
        return;
    asked_ = false;
    errands_.pop_front();
    if (whose)
        whose->answer(line->empty() ? no_manager(request) : *line);
    else
        decides_.spawned(problem);
    ask_manager();
}

void launcher_process::child_ended(std::size_t i, int status)
{
    child &one = children_[i];
    decides_.child_ends(i);
    listen_to(i); /* its last words first */
    const pid_t pid = std::exchange(one.pid, -1);
    const bool is_first = decides_.signal() == 0;
    decides_.child_ended(i, status);
    if (decides_.signal() && is_first)
        std::fprintf(stderr, "zcm-launch: %s on %s, process %d, %s%s: the job ends\n",
                     decides_.name_of(i).c_str(), host_name().c_str(), static_cast<int>(pid),
                     describe_end(status).c_str(),
                     one.left_alone ? ", as its predecessor was gone before it had said go" : "");
}

void launcher_process::reap()
{
    signalfd_siginfo ignored[16];
    while (read(signals_, ignored, sizeof ignored) > 0)
        continue;
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        for (std::size_t i = 0; i < children_.size(); i++)
            if (children_[i].pid == pid)
                child_ended(i, status);
        std::erase_if(nested_, [&](const nested &one) {
            if (one.pid != pid)
                return false;
            if (const int signal = signal_of_launcher(pid, status, one.ranks->get() > 0))
                lost_ = signal;
            return true;
        });
    }
}

void launcher_process::listen_to(std::size_t i)
{
    child &one = children_[i];
    const auto hear_child = [&] {
        while (auto said = one.own->poll())
            decides_.child_says(i, *said);
    };
    hear_child();
    while (one.leaver) {
        if (auto said = one.leaver->poll()) {
            decides_.leaver_says(i, *said);
        } else if (one.leaver->is_closed()) {
            one.leaver.reset();
            hear_child(); /* what it has said before that */
            decides_.leaver_gone(i);
        } else {
            break;
        }
    }
}

int launcher_process::run()
{
    while (!is_over()) {
        std::vector<pollfd> events{{signals_, POLLIN, 0}};
        const auto watch = [&events](const auto &one) {
            if (one && !one->is_closed())
                events.push_back({one->fd(), POLLIN, 0});
        };
        if (asked_)
            events.push_back({manager_.fd(), POLLIN, 0});
        for (const child &one : children_) {
            if (one.leaver)
                events.push_back({one.leaver->fd(), POLLIN, 0});
            if (one.pid > 0) {
                watch(one.own);
                watch(one.manager);
            }
        }
        for (const nested &one : nested_)
            watch(one.manager);
        for (const auto &one : callers_)
            watch(one);
        const int wait_ms = calls_ ? calls_->watch(events) : -1;
        poll(events.data(), events.size(), wait_ms);
        /* First: a child that has ended is not made the rank. */
        reap();
        for (std::size_t i = 0; i < children_.size(); i++) {
            listen_to(i);
            serve(children_[i].manager, decides_.is_rank(i));
        }
        for (const nested &one : nested_) /* which has asked for ranks alone */
            serve(one.manager, true);
        if (asked_)
            hear_manager();
        answer_callers();
    }
    return signal();
}

} // namespace zc::migrate
