/* SPDX-License-Identifier: BSD-3-Clause */
#include "process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

#include "wire.h"

namespace zc::migrate {

namespace {

int ended_rank = 0;
pid_t ended_process = 0; /* not one that it has forked */

/* Never destroyed: exit handlers use it. */
std::shared_ptr<wire> &ended_launcher()
{
    static auto *const one = new std::shared_ptr<wire>;
    return *one;
}

/* Launchers do not care how a process ends whose world is its own; its peers would wait for
 * it for ever, and the job's exit status would be 0. MPI may have ended this one because another
 * has died, which it finds out as soon as the launcher of that one: the launcher says first how. */
void watch_exit(int status, void *)
{
    if (status == 0 || getpid() != ended_process)
        return;
    let_launchers_say();
    end_job_with(status,
                 "ended with exit status " + std::to_string(status) + ", so the job ends too");
}

} // namespace

command command::of_this_process()
{
    command found;
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        throw_errno(errno, "/proc/self/exe");
    found.program.assign(path, static_cast<std::size_t>(length));
    if (!getcwd(path, sizeof path))
        throw_errno(errno, "the working directory");
    found.directory = path;
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (std::size_t at = text.find('\0') + 1; at != 0 && at < text.size();
         at += found.arguments.back().size() + 1)
        found.arguments.emplace_back(text.c_str() + at);
    return found;
}

void complain(int rank, const std::string &text)
{
    if (rank < 0)
        std::fprintf(stderr, "zcm: %s\n", text.c_str());
    else
        std::fprintf(stderr, "zcm: rank %d: %s\n", rank, text.c_str());
    std::fflush(stderr);
}

bool flush_output()
{
    const bool reads = ftrylockfile(stdin) != 0;
    if (reads) {
        std::fflush(stdout);
        std::fflush(stderr);
    } else {
        std::fflush(nullptr);
        funlockfile(stdin);
    }
    for (std::ostream *one : {&std::cout, &std::cerr, &std::clog})
        one->flush();
    for (std::wostream *one : {&std::wcout, &std::wcerr, &std::wclog})
        one->flush();
    /* All units of a program in GNU Fortran, if this is one. */
    using flush_units = void(const int *);
    if (auto *flush = reinterpret_cast<flush_units *>(dlsym(RTLD_DEFAULT, "_gfortran_flush_i4")))
        flush(nullptr);
    return !reads;
}

void flush_all_output()
{
    if (!flush_output())
        throw error(EBUSY, "a thread waits for standard input, so that what the program has in "
                           "buffers of files cannot be written out");
}

void become_rank(int rank, std::shared_ptr<wire> launcher)
{
    ended_rank = rank;
    ended_launcher() = std::move(launcher);
    ended_process = getpid();
    on_exit(watch_exit, nullptr);
}

void note_finalized()
{
    if (const auto &launcher = ended_launcher())
        launcher->send({{"finalized", true}});
}

void let_launchers_say()
{
    constexpr timespec kFirst{0, 500'000'000};
    nanosleep(&kFirst, nullptr);
}

void leave_process(leaving why)
{
    switch (why) {
    case leaving::replaced:
    case leaving::moved:
        if (!flush_output())
            complain(ended_rank, "a thread waits for standard input: what was in buffers of files "
                                 "when the rank left may be missing");
        note_finalized();
        _exit(0);
    case leaving::called_off:
        _exit(0);
    case leaving::not_started:
    case leaving::not_restored:
        _exit(1);
    case leaving::fault_injected:
        _exit(3);
    }
    std::abort();
}

namespace {

[[noreturn]] void end_by_kill()
{
    raise(SIGKILL);
    std::abort();
}

} // namespace

void end_job(int rank, const std::string &text)
{
    std::fflush(stdout);
    complain(rank, text);
    end_by_kill();
}

void end_job_with(int status, const std::string &text)
{
    std::fflush(stdout);
    complain(ended_rank, text);
    if (const auto &launcher = ended_launcher(); launcher && launcher->send({{"abort", status}}))
        for (timespec left{5, 0}; nanosleep(&left, &left) != 0 && errno == EINTR;)
            continue; /* the process manager ends all */
    end_by_kill();
}

} // namespace zc::migrate
