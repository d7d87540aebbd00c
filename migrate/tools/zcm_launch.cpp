/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * zcm-launch: the parent of the ranks of a job on one host (launcher.h). It is started by
 * mpiexec's process manager for a rank that wants successors there; not by hand.
 *
 * The process manager ends the job when one of its processes is killed. Of this one it should only
 * when ranks go with it. So it is two processes: the guard, which the process manager knows and
 * which does nothing but wait, and the launcher, its child.
 *
 * Open MPI's mpirun starts one for each successor (keeper.h).
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end_by_signal.h"
#include "error.h"
#include "keeper.h"
#include "launcher_process.h"
#include "process_manager.h"
#include "rank_count.h"
#include "wire.h"

using namespace zc::migrate;
using zc::error;

namespace {

constexpr double kAnswer = 20; /* seconds for the process manager */

std::string own_path()
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "zcm-launch";
}

int launch(rank_count &ranks)
{
    try {
        process_manager manager = process_manager::of_this_process();
        if (manager.fd() < 0)
            throw error(EINVAL, "is started by mpiexec for a rank that moves, not by hand");
        /* The proxy's come here, too; held, they would keep it alive. */
        close_all_but({manager.fd()});
        fcntl(manager.fd(), F_SETFD, FD_CLOEXEC);
        const start_order order =
            ask_for_order(calling_card::from_text(manager.read_secret(kAnswer)));
        return launcher_process(order, manager, own_path(), ranks).run();
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "zcm-launch: %s\n", problem.what());
        return ranks.get() ? SIGKILL : 0;
    }
}

/** What the process manager knows: it waits, and ends as its child where ranks end with that. */
int guard()
{
    rank_count ranks;
    const pid_t self = getpid();
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != self)
            _exit(1);
        end_launcher(launch(ranks));
    }
    if (child < 0)
        zc::throw_errno(errno, "fork");
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (const int signal = signal_of_launcher(child, status, ranks.get() > 0))
        zc::end_by_signal(signal);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1) {
        const bool version = std::strcmp(argv[1], "--version") == 0;
        std::puts(version ? "zcm-launch " ZC_VERSION
                          : "zcm-launch is started by libzcm through mpiexec: see zcm(7)");
        return version || std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    if (const char *card = std::getenv(kCallVariable)) {
        const std::string of_leaver = card;
        unsetenv(kCallVariable);
        keep(of_leaver);
        return 0;
    }
    for (int one : kForwarded)
        std::signal(one, SIG_IGN);
    try {
        return guard();
    } catch (const error &problem) {
        std::fprintf(stderr, "zcm-launch: %s\n", problem.what());
        return 1;
    }
}
