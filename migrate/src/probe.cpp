/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <netdb.h>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "ancestors.h"
#include "error.h"
#include "launcher.h"

extern char **environ;

namespace zc::migrate {

namespace {

constexpr std::size_t kMostSaid = 4 << 20; /* a process may tell of thousands of libraries */
constexpr const char *kThere = "zcm-program-is-there";
constexpr const char *kMissing = "zcm-program-is-missing";

using clock_type = std::chrono::steady_clock;

struct outcome {
    bool in_time = false;
    int status = 0;
    std::string said;
};

/** Adds to @text what can be read without waiting; what is too much is read all the same. One that
 * never stops printing is read in parts, so that its time can be over. */
void drain(int fd, std::string &text)
{
    char buffer[4096];
    std::size_t left = kMostSaid;
    for (ssize_t got; left > 0 && (got = read(fd, buffer, sizeof buffer)) > 0;) {
        text.append(buffer, std::min(static_cast<std::size_t>(got), kMostSaid - text.size()));
        left -= std::min(static_cast<std::size_t>(got), left);
    }
}

outcome run(const std::vector<std::string> &words, double timeout_s)
{
    /* By its signal Hydra tells a process group that a process has ended (-disable-auto-cleanup),
     * and that may come before the child has a group of its own. So it is blocked until it is
     * ignored. */
    const std::string ignoring = "trap '' USR1; exec \"$@\"";
    std::vector<char *> arguments;
    arguments.reserve(words.size() + 5);
    for (const char *word : {"sh", "-c", ignoring.c_str(), "sh"})
        arguments.push_back(const_cast<char *>(word));
    for (const std::string &word : words)
        arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);

    int output[2];
    if (pipe2(output, O_CLOEXEC) != 0)
        throw_errno(errno, "pipe");
    fcntl(output[0], F_SETFL, O_NONBLOCK); /* this end: who prints more than it holds waits */
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output[1], 1);
    posix_spawn_file_actions_adddup2(&actions, output[1], 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    /* The thread that asks may take no signals; what it starts may need them, as timeout(1) does.
     */
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    posix_spawnattr_setsigmask(&attributes, &blocked);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    pid_t child = -1;
    const int failed =
        posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(output[1]);
    outcome result;
    if (failed) {
        close(output[0]);
        result.in_time = true;
        result.status = 127 << 8;
        result.said = words[0] + ": " + std::strerror(failed);
        return result;
    }
    const auto deadline = clock_type::now() + std::chrono::duration<double>(timeout_s);
    while (!result.in_time && clock_type::now() < deadline) {
        result.in_time = waitpid(child, &result.status, WNOHANG) == child;
        drain(output[0], result.said);
        if (!result.in_time)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (!result.in_time) {
        kill(-child, SIGKILL);
        waitpid(child, &result.status, 0);
    }
    drain(output[0], result.said);
    close(output[0]);
    while (!result.said.empty() && result.said.back() == '\n')
        result.said.pop_back();
    return result;
}

/** What runs @line on @host by the launcher that has started this process; empty if it is not
 * known. As Hydra does, it gives the launcher the arguments that the user wants it to have. */
std::vector<std::string> by_launcher(const std::string &host, const std::string &line)
{
    const std::vector<std::string> proxy = hydra_proxy();
    std::string launcher, command;
    for (std::size_t i = 1; i + 1 < proxy.size(); i++) {
        if (proxy[i] == "--launcher")
            launcher = proxy[i + 1];
        if (proxy[i] == "--launcher-exec")
            command = proxy[i + 1];
    }
    const char *extra = std::getenv("HYDRA_LAUNCHER_EXTRA_ARGS");
    std::istringstream extra_words(extra ? extra : "");
    const std::vector<std::string> chosen{std::istream_iterator<std::string>(extra_words), {}};
    std::vector<std::string> words;
    if (launcher == "ssh" || launcher == "rsh") {
        words = {command.empty() ? launcher : command};
        if (launcher == "ssh" && words[0].ends_with("ssh"))
            words.insert(words.end(), {"-x", "-oBatchMode=yes"});
        words.insert(words.end(), chosen.begin(), chosen.end());
        words.insert(words.end(), {host, line});
    } else if (launcher == "slurm") {
        /* A step of its own, beside that of the ranks; --overlap is not known to all versions. */
        words = {"env", "SLURM_OVERLAP=1", command.empty() ? "srun" : command};
        words.insert(words.end(), {"--input=none", "--mpi=none", "--nodes=1", "--ntasks=1"});
        words.insert(words.end(), chosen.begin(), chosen.end());
        words.insert(words.end(), {"--nodelist=" + host, "sh", "-c", line});
    }
    return words;
}

void knock(const std::string &host, double timeout_s)
{
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int code = getaddrinfo(host.c_str(), "22", &hints, &found))
        throw error(EHOSTUNREACH, "unknown host " + host + ": " + gai_strerror(code));
    int problem = EHOSTUNREACH;
    for (addrinfo *at = found; at && problem; at = at->ai_next) {
        const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        problem = errno;
        if (fd < 0)
            continue;
        problem = connect(fd, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
        if (problem == EINPROGRESS) {
            pollfd event{fd, POLLOUT, 0};
            socklen_t length = sizeof problem;
            if (poll(&event, 1, static_cast<int>(timeout_s * 1000)) <= 0)
                problem = ETIMEDOUT;
            else
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length);
        }
        close(fd);
        if (problem == ECONNREFUSED)
            problem = 0; /* somebody is there to refuse */
    }
    freeaddrinfo(found);
    if (problem)
        throw_errno(problem, "host " + host + " cannot be reached");
}

void replace_all(std::string &text, const std::string &mark, const std::string &value)
{
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
        text.replace(at, mark.size(), value);
}

} // namespace

std::string shell_word(const std::string &text)
{
    std::string word = "'";
    for (char c : text)
        word += c == '\'' ? "'\\''" : std::string(1, c);
    return word + "'";
}

std::string probe_host(const probe &what, const std::string &host)
{
    if (what.how == "none")
        return "";
    std::vector<std::string> words;
    if (what.how == "auto") {
        std::string line =
            "test -x " + shell_word(what.program) + " || { echo " + kMissing + "; exit 1; }";
        if (!what.run.empty())
            line += std::string("; echo ") + kThere + " && " + what.run;
        words = by_launcher(host, line);
        if (words.empty()) {
            knock(host, what.timeout_s);
            return "";
        }
    } else {
        std::string command = what.how;
        replace_all(command, "%h", host);
        replace_all(command, "%p", what.program);
        words = {"sh", "-c", command};
    }
    outcome result = run(words, what.timeout_s);
    /* The launcher's own failures look like those of what it runs. */
    const std::size_t mark = result.said.find(kThere);
    const bool reached = mark != std::string::npos;
    if (reached)
        result.said.erase(mark, std::string_view(kThere).size() + 1);
    const std::string said = result.said.empty() ? "" : ": " + beginning_of(result.said);
    if (!result.in_time)
        throw error(ETIMEDOUT, "host " + host + " does not answer within " +
                                   std::to_string(static_cast<int>(what.timeout_s)) + " s" + said);
    const bool is_missing = WIFEXITED(result.status) && WEXITSTATUS(result.status) == 1 &&
                            (said.empty() || said.find(kMissing) != std::string::npos);
    if (is_missing)
        throw error(ENOENT, "host " + host + " has no program " + what.program);
    if (result.status != 0 && reached)
        throw error(ENOEXEC, "host " + host + " cannot run " + what.program + said);
    if (result.status != 0)
        throw error(EHOSTUNREACH, "host " + host + " cannot be reached: " + words[0] + " " +
                                      describe_end(result.status) + said);
    return result.said;
}

std::string beginning_of(const std::string &said)
{
    constexpr std::size_t kMost = 2048;
    return said.size() <= kMost ? said : said.substr(0, kMost) + "...";
}

} // namespace zc::migrate
