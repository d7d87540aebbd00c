/* SPDX-License-Identifier: BSD-3-Clause */
#include "criu.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capabilities.h"
#include "error.h"
#include "own_namespaces.h"
#include "rank_process.h"

namespace zc::holder {
namespace {

constexpr std::size_t kMostReasons = 4;
constexpr int kNoClocks = 126; /* exit status, as CRIU has none */
/* For what takes some milliseconds. */
constexpr int kFinishTries = 5000;
constexpr useconds_t kFinishPause = 1000;

[[noreturn]] void execute(pid_t parent, const std::vector<std::string> &words,
                          const std::function<void()> &clocks)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const std::vector<char *> arguments = arguments_of(words);
    try {
        if (clocks)
            clocks();
    } catch (const error &) {
        _exit(kNoClocks);
    }
    if (is_in_own_user_namespace()) /* elsewhere it has what its user was given */
        keep_capabilities_for_criu();
    execvp(arguments[0], arguments.data());
    _exit(127);
}

} // namespace

criu_run::criu_run(const std::string &program, const std::string &verb,
                   const std::string &directory, const std::vector<std::string> &options,
                   const std::function<void()> &clocks)
    : verb_(verb), log_(directory + "/" + verb + ".log")
{
    std::vector<std::string> words = {
        program,          verb,          "--images-dir", directory,
        "--log-file",     verb + ".log", "-v2",          "--manage-cgroups=ignore",
        "--leave-stopped"};
    if (geteuid() != 0)
        words.emplace_back("--unprivileged");
    words.insert(words.end(), options.begin(), options.end());
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0)
        throw_errno(errno, "fork");
    if (pid_ == 0)
        execute(parent, words, clocks);
}

criu_run::~criu_run()
{
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
}

std::optional<bool> criu_run::result()
{
    if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) != pid_)
        return {};
    pid_ = -1;
    return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
}

void criu_run::finish()
{
    for (int tries = 0; !result() && tries < kFinishTries; tries++)
        usleep(kFinishPause);
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, &status_, 0);
        pid_ = -1;
    }
}

std::string criu_run::reason() const
{
    if (WIFEXITED(status_) && WEXITSTATUS(status_) == 127)
        return "criu cannot be executed (ZC_CRIU names the program)";
    if (WIFEXITED(status_) && WEXITSTATUS(status_) == kNoClocks)
        return "its clocks cannot go on: no time namespace can be made, or entered";
    std::string text = "criu " + verb_ + ": ";
    std::ifstream log(log_);
    std::size_t found = 0;
    for (std::string each; std::getline(log, each) && found < kMostReasons;) {
        const std::size_t at = each.find("Error");
        if (at == std::string::npos)
            continue;
        text += (found++ ? "; " : "") + each.substr(at);
    }
    if (found == 0)
        text += WIFSIGNALED(status_) ? "ended by signal " + std::to_string(WTERMSIG(status_))
                                     : "status " + std::to_string(WEXITSTATUS(status_));
    return text;
}

std::vector<std::string> dump_options(pid_t pid, const std::vector<end> &ends)
{
    std::vector<std::string> options = {"--tree", std::to_string(pid)};
    for (const end &each : ends) {
        if (!each.is_socket) /* half of a pipe needs no leave */
            continue;
        options.emplace_back("--external");
        options.push_back("unix[" + std::to_string(each.inode) + "]");
    }
    return options;
}

dump_pause::dump_pause()
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        throw_errno(errno, "socketpair");
    ours_ = descriptor{pair[0]};
    server_ = descriptor{pair[1]};
    status_ = descriptor{dup(server_.fd)}; /* CRIU closes it when it has written to it */
    if (status_.fd < 0 || fcntl(server_.fd, F_SETFD, 0) != 0)
        throw_errno(errno, "dup");
}

std::vector<std::string> dump_pause::options() const
{
    return {"--lazy-pages", "--ps-socket", std::to_string(server_.fd), "--status-fd",
            std::to_string(status_.fd)};
}

void dump_pause::started()
{
    server_ = descriptor{};
    status_ = descriptor{};
}

bool dump_pause::has_come()
{
    char byte;
    return read(ours_.fd, &byte, 1) == 1;
}

std::vector<std::string> restore_options(const std::vector<new_end> &ends, bool filled)
{
    std::vector<std::string> options = {"--restore-detached", "--restore-sibling"};
    if (filled)
        options.emplace_back("--lazy-pages");
    for (const new_end &each : ends) {
        fcntl(each.theirs.fd, F_SETFD, 0);
        options.emplace_back("--inherit-fd");
        options.push_back("fd[" + std::to_string(each.theirs.fd) + "]:" + each.what.name());
    }
    return options;
}

} // namespace zc::holder
