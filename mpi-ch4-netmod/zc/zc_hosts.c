/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "zc_hosts.h"

/* Appends the address in @from to @list if it is of @family and of such an interface, and there is room. */
static void append(char *list, size_t room, size_t * length, const struct ifaddrs *from, int family,
                   bool loopback)
{
    const void *address;
    size_t size;

    if (!from->ifa_addr || from->ifa_addr->sa_family != family || !(from->ifa_flags & IFF_UP) ||
        loopback != !!(from->ifa_flags & IFF_LOOPBACK)) {
        return;
    }
    if (family == AF_INET) {
        address = &((const struct sockaddr_in *) from->ifa_addr)->sin_addr;
        size = sizeof(struct in_addr);
    } else {
        const struct in6_addr *six = &((const struct sockaddr_in6 *) from->ifa_addr)->sin6_addr;
        if (IN6_IS_ADDR_LINKLOCAL(six)) {
            return;
        }
        address = six;
        size = sizeof(*six);
    }
    if (*length + 1 + size <= room) {
        list[*length] = (char) size;
        memcpy(list + *length + 1, address, size);
        *length += 1 + size;
    }
}

int MPIDI_ZC_hosts_list(char *list, size_t room, size_t * length)
{
    static const struct {
        int family;
        bool loopback;
    } order[] = { {AF_INET, false}, {AF_INET6, false}, {AF_INET, true} };
    struct ifaddrs *all;

    *length = 0;
    if (getifaddrs(&all) != 0) {
        return errno;
    }
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        for (const struct ifaddrs * one = all; one; one = one->ifa_next) {
            append(list, room, length, one, order[i].family, order[i].loopback);
        }
    }
    freeifaddrs(all);
    return 0;
}

bool MPIDI_ZC_hosts_next(MPIDI_ZC_host_t * host)
{
    if (host->at >= host->length) {
        return false;
    }
    const size_t size = (unsigned char) host->list[host->at];
    if ((size != sizeof(struct in_addr) && size != sizeof(struct in6_addr)) ||
        size >= host->length - host->at) {
        return false;
    }
    host->address = host->list + host->at + 1;
    host->size = size;
    host->at += 1 + size;
    return true;
}

int MPIDI_ZC_hosts_connect(const MPIDI_ZC_host_t * host, uint16_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,.sin6_port = port };
    struct sockaddr_in four = {.sin_family = AF_INET,.sin_port = port };
    const bool is_four = host->size == sizeof(four.sin_addr);
    const int fd = socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                          0);
    int done;

    if (fd < 0) {
        return -1;
    }
    if (is_four) {
        memcpy(&four.sin_addr, host->address, host->size);
        done = connect(fd, (struct sockaddr *) &four, sizeof(four));
    } else {
        memcpy(&six.sin6_addr, host->address, host->size);
        done = connect(fd, (struct sockaddr *) &six, sizeof(six));
    }
    if (done != 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}
