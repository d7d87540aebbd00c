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

extern char **environ;

namespace zc::migrate {

using nlohmann::json;

namespace {

constexpr double kCall = 10; /* seconds at most until a leaver has heard us */

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
    std::vector<std::string> said = order.environment;
    said.push_back(std::string(kSuccessorVariable) + "=fd:" + std::to_string(fd));
    said.push_back("PMI_FD=" + std::to_string(manager));
    said.emplace_back("PMI_RANK=0");
    said.emplace_back("PMI_SIZE=1");
    for (const std::string &one : said) {
        const std::string name = one.substr(0, one.find('=') + 1);
        std::erase_if(all, [&](const std::string &old) { return old.starts_with(name); });
        all.push_back(one);
    }
    return all;
}

std::vector<char *> pointers(std::vector<std::string> &words)
{
    std::vector<char *> all;
    all.reserve(words.size() + 1);
    for (std::string &word : words)
        all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

/** In the child. It ends with its parent: the process manager does not know it. */
[[noreturn]] void become(const start_order &order, pid_t parent, int fd, int manager)
{
    std::vector<std::string> words{order.program};
    words.insert(words.end(), order.arguments.begin(), order.arguments.end());
    std::vector<std::string> variables = environment_of(order, fd, manager);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int one : kForwarded)
        std::signal(one, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    fcntl(fd, F_SETFD, 0);
    fcntl(manager, F_SETFD, 0);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    if (nothing != 0)
        close(nothing);
    const char *problem = order.directory.c_str();
    if (chdir(order.directory.c_str()) == 0) {
        problem = words[0].c_str();
        execve(words[0].c_str(), pointers(words).data(), pointers(variables).data());
    }
    std::fprintf(stderr, "zcm-launch: %s: %s\n", problem, std::strerror(errno));
    _exit(127);
}

} // namespace

json start_order::to_json() const
{
    json cards = json::array();
    for (const calling_card &one : leavers)
        cards.push_back(one.to_text());
    return {{"program", program},
            {"arguments", arguments},
            {"directory", directory},
            {"environment", environment},
            {"leavers", cards}};
}

start_order start_order::from_json(const json &object)
{
    start_order order;
    order.program = object.at("program");
    order.arguments = object.at("arguments").get<std::vector<std::string>>();
    order.directory = object.at("directory");
    order.environment = object.at("environment").get<std::vector<std::string>>();
    for (const std::string &card : object.at("leavers").get<std::vector<std::string>>())
        order.leavers.push_back(calling_card::from_text(card));
    return order;
}

launcher_process::launcher_process(const start_order &order, process_manager manager,
                                   std::string tool, volatile int *ranks)
    : manager_(std::move(manager)), tool_(std::move(tool)), ranks_(ranks),
      children_(order.leavers.size()), decides_(order.leavers.size(), *this)
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
        start(one, order);
}

launcher_process::~launcher_process()
{
    for (const child &one : children_)
        if (one.pid > 0)
            kill(one.pid, SIGKILL);
    close(signals_);
}

void launcher_process::start(child &one, const start_order &order)
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
    one.manager = std::make_unique<singleton_manager>(managed[0]);
    const pid_t self = getpid();
    one.pid = fork();
    if (one.pid == 0)
        become(order, self, ends[1], managed[1]);
    close(ends[1]);
    close(managed[1]);
    if (one.pid < 0)
        throw_errno(errno, "fork");
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

void launcher_process::spawn(const std::string &host, const std::string &card)
{
    errands_.push_back({kOwn, "", host, card});
    ask_manager();
}

/** What the MPI of a rank wants of its process manager. */
void launcher_process::serve(std::size_t i)
{
    child &one = children_[i];
    while (one.manager && !one.manager->is_closed()) {
        auto request = one.manager->poll();
        if (!request)
            break;
        errands_.push_back({static_cast<int>(i), std::move(*request), "", ""});
    }
    ask_manager();
}

void launcher_process::ask_manager()
{
    while (!asked_ && !errands_.empty()) {
        const errand next = errands_.front();
        const std::string problem = next.child == kOwn ? manager_.ask(next.host, tool_, next.card)
                                                       : manager_.forward(next.request);
        asked_ = problem.empty();
        if (asked_)
            return;
        errands_.pop_front();
        if (next.child == kOwn)
            decides_.spawned(problem);
        else
            children_[static_cast<std::size_t>(next.child)].manager->answer(
                "cmd=result rc=-1 msg=no_process_manager");
    }
}

void launcher_process::hear_manager()
{
    const int whose = errands_.front().child;
    if (whose == kOwn) {
        std::string problem;
        if (!manager_.answer(problem))
            return;
        asked_ = false;
        errands_.pop_front();
        decides_.spawned(problem);
    } else {
        const auto line = manager_.reply();
        if (!line)
            return;
        asked_ = false;
        errands_.pop_front();
        children_[static_cast<std::size_t>(whose)].manager->answer(
            line->empty() ? "cmd=result rc=-1 msg=no_process_manager" : *line);
    }
    ask_manager();
}

void launcher_process::reap()
{
    signalfd_siginfo ignored[16];
    while (read(signals_, ignored, sizeof ignored) > 0)
        continue;
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (std::size_t i = 0; i < children_.size(); i++)
            if (children_[i].pid == pid) {
                listen_to(i); /* its last words first */
                children_[i].pid = -1;
                decides_.child_ended(i, status);
                if (decides_.signal())
                    std::fprintf(stderr, "zcm-launch: a rank, process %d, %s%s: the job ends\n",
                                 static_cast<int>(pid), describe_end(status).c_str(),
                                 children_[i].left_alone
                                     ? ", as its predecessor was gone before it had said go"
                                     : "");
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
    while (!decides_.is_over()) {
        std::vector<pollfd> events{{signals_, POLLIN, 0}};
        if (asked_)
            events.push_back({manager_.fd(), POLLIN, 0});
        for (const child &one : children_) {
            if (one.pid > 0 && !one.own->is_closed())
                events.push_back({one.own->fd(), POLLIN, 0});
            if (one.leaver)
                events.push_back({one.leaver->fd(), POLLIN, 0});
            if (one.pid > 0 && !one.manager->is_closed())
                events.push_back({one.manager->fd(), POLLIN, 0});
        }
        poll(events.data(), events.size(), -1);
        /* First: a child that has ended is not made the rank. */
        reap();
        for (std::size_t i = 0; i < children_.size(); i++) {
            listen_to(i);
            serve(i);
        }
        if (asked_)
            hear_manager();
    }
    return decides_.signal();
}

} // namespace zc::migrate
