/* SPDX-License-Identifier: BSD-3-Clause */
#include "zct/launch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "program_file.h"
#include "zct/trace.h"

namespace fs = std::filesystem;

namespace zc::zct {

namespace {

using variables = std::vector<std::pair<std::string, std::string>>;

[[noreturn]] void fail(const std::string &why)
{
    throw launch_error(kExitFailed, why);
}

fs::path tracer_library(flavour mpi)
{
    std::error_code problem;
    const fs::path bin = fs::read_symlink("/proc/self/exe", problem).parent_path();
    const std::string name = std::string("libzctrace-") + flavour_name(mpi) + ".so";
    for (const char *folder : {"lib", ZCT_LIBRARY_DIR})
        if (const fs::path library = bin / ".." / folder / name; fs::exists(library, problem)) {
            fs::path found = fs::canonical(library);
            if (found.string().find_first_of(" :") != std::string::npos)
                fail(found.string() + ": LD_PRELOAD cannot name a path with a blank or colon");
            return found;
        }
    fail(std::string("the tracer for ") + (mpi == flavour::mpich ? "MPICH" : "Open MPI") +
         " was not built (" + name + ")");
}

bool holds_trace(const fs::path &folder)
{
    return is_trace_folder(folder);
}

fs::path free_name()
{
    for (unsigned i = 1;; i++) {
        fs::path name = i == 1 ? "trace.zct" : "trace-" + std::to_string(i) + ".zct";
        if (!fs::exists(fs::symlink_status(name)))
            return name;
    }
}

/* Only what an earlier trace left, and the folders of spawned programs that held nothing else. */
void remove_trace(const fs::path &folder)
{
    std::error_code problem;
    const fs::path here = (folder / "r0.zct").parent_path(); /* spelt as theirs */
    for (const fs::path &file : trace_files(folder)) {
        if (!fs::remove(file, problem) && problem)
            fail(file.string() + ": " + problem.message());
        if (const fs::path below = file.parent_path(); below != here)
            fs::remove(below, problem);
    }
}

/** Makes the folder if it is not there; true if so. */
bool prepare_folder(const fs::path &folder, bool replace)
{
    std::error_code problem;
    const bool made = fs::create_directories(folder, problem);
    if (problem)
        fail(folder.string() + ": " + problem.message());
    if (!fs::is_directory(folder))
        fail(folder.string() + ": is not a folder");
    if (access(folder.c_str(), W_OK | X_OK) != 0)
        fail(folder.string() + ": " + std::strerror(errno));
    if (holds_trace(folder)) {
        if (!replace)
            fail(folder.string() + ": holds a trace already (--force replaces it)");
        remove_trace(folder);
    }
    return made;
}

/** The command with what gives ranks, and ranks only, the variables. */
std::vector<std::string> with_variables(const launch_options &options, const variables &set,
                                        bool &in_environment)
{
    const auto launcher = flavour_of_launcher(program_file(options.command.front()));
    in_environment = !launcher;
    std::vector<std::string> command = {options.command.front()};
    for (const auto &[name, value] : set) {
        if (launcher == flavour::mpich)
            command.insert(command.end(), {"-genv", name, value});
        else if (launcher == flavour::openmpi)
            command.insert(command.end(), {"-x", name + "=" + value});
    }
    command.insert(command.end(), options.command.begin() + 1, options.command.end());
    return command;
}

pid_t child = -1;

void pass_on(int signal)
{
    if (child > 0)
        kill(child, signal);
}

/**
 * The signals that may end us, while the command runs: an interrupt from the terminal reaches the
 * command itself, and we wait for it to end and then report; others are passed on. What was ignored
 * when we were started, as nohup(1) has it, is ignored here and in the command. Afterwards all is
 * as it was.
 */
class signals {
  public:
    /* None comes from here on, until it is clear to whom. */
    signals()
    {
        sigset_t all;
        sigemptyset(&all);
        for (std::size_t i = 0; i < kAll.size(); i++) {
            sigaddset(&all, kAll[i]);
            sigaction(kAll[i], nullptr, &before_[i]);
        }
        sigprocmask(SIG_BLOCK, &all, &mask_);
    }
    ~signals()
    {
        for (std::size_t i = 0; i < kAll.size(); i++)
            sigaction(kAll[i], &before_[i], nullptr);
        sigprocmask(SIG_SETMASK, &mask_, nullptr);
    }
    signals(const signals &) = delete;
    signals &operator=(const signals &) = delete;

    void leave_to_command()
    {
        struct sigaction action = {};
        for (std::size_t i = 0; i < kAll.size(); i++) {
            action.sa_handler = kAll[i] == SIGINT || kAll[i] == SIGQUIT ? SIG_IGN : pass_on;
            if (before_[i].sa_handler != SIG_IGN)
                sigaction(kAll[i], &action, nullptr);
        }
        sigprocmask(SIG_SETMASK, &mask_, nullptr);
    }

    /** In the command's process: a handler of ours is not for it. */
    void give_to_command()
    {
        for (std::size_t i = 0; i < kAll.size(); i++)
            if (before_[i].sa_handler != SIG_IGN)
                std::signal(kAll[i], SIG_DFL);
        sigprocmask(SIG_SETMASK, &mask_, nullptr);
    }

  private:
    static constexpr std::array kAll = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    std::array<struct sigaction, kAll.size()> before_ = {};
    sigset_t mask_ = {};
};

[[noreturn]] void become(const std::vector<std::string> &command)
{
    std::vector<char *> argv;
    argv.reserve(command.size() + 1);
    for (const std::string &word : command)
        argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    const int error = errno;
    const std::string text = std::string(program_invocation_short_name) + ": " + command[0] + ": " +
                             std::strerror(error) + "\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    _exit(error == ENOENT ? kExitNotFound : kExitNotExecutable);
}

int run_command(const std::vector<std::string> &command, const variables &environment)
{
    signals signals;
    child = fork();
    if (child < 0)
        fail(std::string("fork: ") + std::strerror(errno));
    if (child == 0) {
        signals.give_to_command();
        for (const auto &[name, value] : environment)
            setenv(name.c_str(), value.c_str(), 1);
        become(command);
    }
    signals.leave_to_command();
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    child = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

flavour choose_mpi(const launch_options &options)
{
    if (options.mpi)
        return *options.mpi;
    if (const auto found = flavour_of_command(options.command))
        return *found;
    fail(options.command.front() +
         ": cannot tell which MPI the program uses; say --mpi mpich or --mpi openmpi");
}

} // namespace

launch_result launch(const launch_options &options)
{
    if (program_file(options.command.front()).empty()) {
        const bool there = options.command.front().find('/') != std::string::npos &&
                           fs::exists(options.command.front());
        throw launch_error(there ? kExitNotExecutable : kExitNotFound,
                           options.command.front() +
                               (there ? ": is not a program that can be run" : ": not found"));
    }
    const flavour mpi = choose_mpi(options);
    std::string preload = tracer_library(mpi).string();
    if (const char *others = std::getenv("LD_PRELOAD"); others && *others)
        preload += std::string(":") + others;

    const fs::path folder = fs::absolute(options.folder.empty() ? free_name() : options.folder);
    const bool made = prepare_folder(folder, options.replace);
    const variables set = {{"LD_PRELOAD", preload},
                           {"ZC_TRACE_DIR", folder.string()},
                           {"ZC_TRACE_CALLS", options.calls ? "1" : "0"}};
    bool in_environment = false;
    const std::vector<std::string> command = with_variables(options, set, in_environment);
    const int code = run_command(command, in_environment ? set : variables{});
    if (std::error_code problem; made && fs::is_empty(folder, problem))
        fs::remove(folder, problem);
    return {folder, mpi, code};
}

} // namespace zc::zct
