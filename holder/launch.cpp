/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end_by_signal.h"
#include "error.h"

namespace zc::holder {

signal_source::signal_source()
{
    sigset_t read;
    sigfillset(&read);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&read, fault);
    sigprocmask(SIG_BLOCK, &read, &before_);
    fd_ = descriptor{signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (fd_.fd < 0)
        throw_errno(errno, "signalfd");
}

int signal_source::next()
{
    signalfd_siginfo got;
    return read(fd_.fd, &got, sizeof got) == sizeof got ? static_cast<int>(got.ssi_signo) : 0;
}

int process_manager_descriptor()
{
    const char *const text = std::getenv("PMI_FD");
    if (text == nullptr)
        return -1;
    int fd = -1;
    const auto [end, wrong] = std::from_chars(text, text + std::strlen(text), fd);
    if (wrong != std::errc{} || *end != '\0' || fcntl(fd, F_GETFD) < 0)
        throw error(EBADF, std::string("PMI_FD=") + text + " is no descriptor of the launcher's");
    return fd;
}

void end_as(int status)
{
    if (WIFSIGNALED(status))
        end_by_signal(WTERMSIG(status));
    _exit(WEXITSTATUS(status));
}

} // namespace zc::holder
