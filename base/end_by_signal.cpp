/* SPDX-License-Identifier: BSD-3-Clause */
#include "end_by_signal.h"

#include <csignal>
#include <cstdlib>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace zc {

void end_by_signal(int signal)
{
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
    std::signal(signal, SIG_DFL);
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, signal);
    sigprocmask(SIG_UNBLOCK, &own, nullptr);
    raise(signal);
    raise(SIGKILL);
    std::abort();
}

} // namespace zc
