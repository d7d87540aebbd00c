/* SPDX-License-Identifier: BSD-3-Clause */
#include "agents_of_job.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent_start.h"
#include "allowed_hosts.h"
#include "clock.h"
#include "dispatch.h"
#include "error.h"
#include "identity.h"
#include "launcher.h"

namespace zc::migrate {

namespace {

using nlohmann::json;

constexpr int kOrderVersion = 1;
constexpr int kLook = 200;                       /* ms */
constexpr std::size_t kLongestConfig = 32 << 10; /* an order fits into a pipe */
constexpr std::size_t kLongestLine = 64 << 10;
constexpr std::array kWatched = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};

/** A process that has been started, or -1. */
using pid = pid_t;

std::string own_directory()
{
    std::error_code problem;
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", problem);
    return problem ? "" : own.parent_path().string();
}

/** The end of a pipe that this process keeps; closed with it. */
class end_of_pipe {
  public:
    end_of_pipe() = default;
    explicit end_of_pipe(int fd) : fd_(fd) {}
    end_of_pipe(end_of_pipe &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    end_of_pipe &operator=(end_of_pipe &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~end_of_pipe() { shut(); }
    void shut()
    {
        if (fd_ >= 0)
            close(std::exchange(fd_, -1));
    }
    int fd() const { return fd_; }

    /** Whole lines, without their ends, as far as they have come; shut when there is no more. */
    std::vector<std::string> lines()
    {
        std::array<char, 4096> buffer;
        ssize_t got = 0;
        while (fd_ >= 0 && (got = read(fd_, buffer.data(), buffer.size())) > 0)
            text_.append(buffer.data(), static_cast<std::size_t>(got));
        if (fd_ >= 0 && (got == 0 || (errno != EAGAIN && errno != EINTR))) {
            shut();
            if (!text_.empty())
                text_ += '\n';
        }
        std::vector<std::string> all;
        for (std::size_t at;
             (at = text_.find('\n')) != std::string::npos || text_.size() > kLongestLine;) {
            at = std::min(at, text_.size());
            all.push_back(text_.substr(0, at));
            text_.erase(0, at + 1);
        }
        return all;
    }

  private:
    int fd_ = -1;
    std::string text_;
};

/** One agent, by its launcher. */
struct agent_process {
    pid process = -1;
    end_of_pipe in, out, err;
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> log{nullptr, std::fclose};
};

/** Both ends; @ours does not block if it is read from. */
struct pipe_ends {
    explicit pipe_ends(bool we_read)
    {
        std::array<int, 2> fds{};
        if (pipe2(fds.data(), O_CLOEXEC) != 0)
            throw_errno(errno, "pipe");
        ours = end_of_pipe(fds[we_read ? 0 : 1]);
        theirs = end_of_pipe(fds[we_read ? 1 : 0]);
        if (we_read)
            fcntl(ours.fd(), F_SETFL, O_NONBLOCK);
    }
    end_of_pipe ours, theirs;
};

[[noreturn]] void become(const std::vector<std::string> &command)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    std::vector<char *> words;
    words.reserve(command.size() + 1);
    for (const std::string &word : command)
        words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    fmt::print(stderr, "zcm-run: {}: {}\n", command[0], std::strerror(errno));
    _exit(1);
}

/** Does what a dispatch decides, with processes. */
class dispatcher final : private dispatch_actions {
  public:
    dispatcher(const agents_options &options, std::vector<std::string> hosts, agent_start start,
               const json &order, const std::vector<std::string> &command, std::string profiles)
        : options_(options), hosts_(std::move(hosts)), start_(std::move(start)), command_(command),
          profiles_(std::move(profiles)), agents_(hosts_.size()),
          decides_(hosts_, order, options.wait_s, options.finds, *this)
    {
    }
    int run();

  private:
    void start_agent(std::size_t agent, const json &order) override;
    void tell_agent(std::size_t agent, const json &what) override;
    void release_agent(std::size_t agent) override { agents_[agent].in.shut(); }
    void kill_agent(std::size_t agent, int signal) override
    {
        if (agents_[agent].process > 0)
            kill(-agents_[agent].process, signal);
    }
    void start_job(const std::string &profiles) override;
    void signal_job(int signal) override
    {
        if (job_ > 0)
            kill(job_, signal);
    }
    void say(const std::string &text) override { fmt::print(stderr, "zcm-run: {}\n", text); }

    void wait_for_something() const;
    void hear(std::size_t agent);
    void take_signals();
    void reap();

    const agents_options &options_;
    std::vector<std::string> hosts_;
    agent_start start_;
    const std::vector<std::string> &command_;
    std::string profiles_; /* where ranks tell agents of themselves, if none was found */
    std::vector<agent_process> agents_;
    pid job_ = -1;
    end_of_pipe signals_;
    dispatch decides_;
};

void dispatcher::start_agent(std::size_t agent, const json &order)
{
    agent_process &it = agents_[agent];
    pipe_ends in(false), out(true), err(true);
    const std::vector<std::string> words = start_.command(hosts_[agent], options_.program);
    const pid child = fork();
    if (child == 0) {
        /* What the terminal sends is for the job; agents end after it. */
        setpgid(0, 0);
        dup2(in.theirs.fd(), STDIN_FILENO);
        dup2(out.theirs.fd(), STDOUT_FILENO);
        dup2(err.theirs.fd(), STDERR_FILENO);
        become(words);
    }
    if (child < 0)
        throw_errno(errno, "fork");
    setpgid(child, child);
    it.process = child;
    it.in = std::move(in.ours);
    it.out = std::move(out.ours);
    it.err = std::move(err.ours);
    if (!options_.logs.empty()) {
        const std::string path = options_.logs + "/" + hosts_[agent] + ".log";
        it.log.reset(std::fopen(path.c_str(), "ae"));
        if (!it.log)
            say(path + ": " + std::strerror(errno));
    }
    tell_agent(agent, order);
}

void dispatcher::tell_agent(std::size_t agent, const json &what)
{
    agent_process &it = agents_[agent];
    const std::string line = what.dump() + "\n";
    if (it.in.fd() >= 0 &&
        write(it.in.fd(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        it.in.shut(); /* it has ended; by what is said when it is reaped */
}

void dispatcher::start_job(const std::string &profiles)
{
    const pid self = getpid();
    job_ = fork();
    if (job_ == 0) {
        /* Without agents to end it, it goes as if this process were mpiexec. */
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != self)
            _exit(1);
        /* In the job's environment alone: what is started on this host looks for agents by its own.
         */
        setenv("ZCM_PROFILE_DIR", (profiles.empty() ? profiles_ : profiles).c_str(), 1);
        become(command_);
    }
    if (job_ < 0) {
        say(std::string("fork: ") + std::strerror(errno));
        decides_.job_ended(1, seconds());
    }
}

void dispatcher::hear(std::size_t agent)
{
    agent_process &it = agents_[agent];
    for (const std::string &line : it.err.lines()) {
        if (it.log) {
            fmt::print(it.log.get(), "{}\n", line);
            std::fflush(it.log.get());
        }
        if (!it.log || line.find(" warning: ") != std::string::npos ||
            line.find(" error: ") != std::string::npos || line.find(" zcmd ") == std::string::npos)
            say(hosts_[agent] + ": " + line);
    }
    for (const std::string &line : it.out.lines())
        decides_.agent_prints(agent, line, seconds());
}

void dispatcher::reap()
{
    int status = 0;
    for (std::size_t i = 0; i < agents_.size(); i++) {
        agent_process &it = agents_[i];
        if (it.process <= 0 || waitpid(it.process, &status, WNOHANG) != it.process)
            continue;
        hear(i);
        it.process = -1;
        it.in.shut();
        decides_.agent_ended(i, describe_end(status), seconds());
    }
    if (job_ > 0 && waitpid(job_, &status, WNOHANG) == job_) {
        job_ = -1;
        decides_.job_ended(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                           seconds());
    }
}

void dispatcher::take_signals()
{
    signalfd_siginfo one{};
    while (read(signals_.fd(), &one, sizeof one) == sizeof one) {
        if (one.ssi_signo == SIGCHLD)
            continue;
        /* The terminal sends it to the job, too, which is in the same group. */
        if (job_ > 0 && one.ssi_code == SI_KERNEL)
            continue;
        decides_.signalled(static_cast<int>(one.ssi_signo), seconds());
    }
}

void dispatcher::wait_for_something() const
{
    std::vector<pollfd> all = {{signals_.fd(), POLLIN, 0}};
    for (const agent_process &it : agents_)
        for (int fd : {it.out.fd(), it.err.fd()})
            if (fd >= 0)
                all.push_back({fd, POLLIN, 0});
    poll(all.data(), all.size(), kLook);
}

int dispatcher::run()
{
    std::signal(SIGPIPE, SIG_IGN);
    sigset_t watched;
    sigemptyset(&watched);
    for (int one : kWatched)
        sigaddset(&watched, one);
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    signals_ = end_of_pipe(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    decides_.begin(seconds());
    while (!decides_.is_over()) {
        wait_for_something();
        for (std::size_t i = 0; i < agents_.size(); i++)
            hear(i);
        take_signals();
        reap();
        decides_.tick(seconds());
    }
    return decides_.status();
}

std::string read_config(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file)
        throw_errno(errno != 0 ? errno : EIO, path);
    if (text.size() > kLongestConfig)
        throw error(EFBIG, path + ": more than 32 KiB");
    return text;
}

/** New on each host, and short enough for the socket in it. */
std::string new_directory(const std::string &place)
{
    std::string path = fmt::format("{}/zcm-{}-{:016x}", place, geteuid(), draw_identity());
    if (!place.starts_with("/"))
        throw error(EINVAL, "--agents-dir " + place + ": wants a path from / on");
    if (path.size() + std::strlen("/zcmd.sock") >= sizeof(sockaddr_un::sun_path))
        throw error(ENAMETOOLONG, "--agents-dir " + place + ": too long for a socket below it");
    return path;
}

void check_program(const std::string &path)
{
    constexpr auto kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-";
    if (path.find_first_not_of(kPlain) != std::string::npos)
        throw error(EINVAL, path + ": a shell on another host would not take this name as it is");
    if (access(path.c_str(), X_OK) != 0)
        throw_errno(errno, path);
}

} // namespace

int run_with_agents(const agents_options &options, const std::vector<std::string> &command)
{
    agents_options complete = options;
    if (complete.program.empty())
        complete.program = own_directory() + "/zcmd";
    check_program(complete.program);
    const char *chosen = std::getenv("ZC_MIGRATE_HOSTS");
    const allowed_hosts hosts = hosts_of_command(chosen ? chosen : "", command);
    agent_start start = find_agent_start(options.launcher, command);
    const std::string directory = new_directory(options.directory);
    json order = {{"version", kOrderVersion}, {"mode", options.mode}, {"directory", directory}};
    /* Without it agents that run already are looked for by the file that they have themselves. */
    if (!options.config.empty())
        order["config"] = read_config(options.config);
    if (options.logs.empty()) {
        order["log_level"] = "warn";
    } else {
        std::error_code problem;
        std::filesystem::create_directories(options.logs, problem);
        if (problem)
            throw error(problem.value(), options.logs + ": " + problem.message());
    }
    if (const char *sockets = std::getenv("ZC_MIGRATE_SOCKETS"))
        order["sockets"] = sockets;
    return dispatcher(complete, hosts.names, std::move(start), order, command, directory + "/ranks")
        .run();
}

} // namespace zc::migrate
