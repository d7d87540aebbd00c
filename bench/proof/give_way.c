/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded, it lets ranks that wait rest between their looks at the network.
 *
 * The programs here sleep in place of work, so that two processors suffice for any number of ranks.
 * But a rank that waits in MPI polls, and takes its processor from the ranks that it waits for. So
 * a process that has looked for events in vain for a while (epoll_wait(2) with no time to wait)
 * sleeps a little before it looks again. It is the same for all libraries that are compared.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/epoll.h>
#include <time.h>

enum { IN_VAIN = 100, REST_NS = 20000 };

int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
    static int (*real)(int, struct epoll_event *, int, int);
    static __thread unsigned in_vain;
    if (!real)
        real = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
    const int found = real(epfd, events, maxevents, timeout);
    if (timeout != 0 || found != 0) {
        in_vain = 0;
    } else if (++in_vain > IN_VAIN) {
        const struct timespec rest = {0, REST_NS};
        nanosleep(&rest, NULL);
    }
    return found;
}
