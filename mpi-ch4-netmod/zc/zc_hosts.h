/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOSTS_H_INCLUDED
#define ZC_HOSTS_H_INCLUDED

/* The addresses of a host, as one process sends them to another that connects by TCP: each has its
 * length, 4 or 16, in a byte, and follows in the order of the network. Any thread may call these
 * functions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in a list. It begins in front of the first address. */
typedef struct {
    const char *list;           /* the caller's */
    size_t length;
    size_t at;                  /* of the next address */
    const char *address;
    size_t size;
} MPIDI_ZC_host_t;

/* Writes the addresses of this host to @list, as many as there is room for: those of IPv4 first, and
 * loopback last. Returns 0 or errno; *@length is 0 then. */
int MPIDI_ZC_hosts_list(char *list, size_t room, size_t * length);

/* Goes on to the next address of the list. False: there is none, or none that makes sense. */
bool MPIDI_ZC_hosts_next(MPIDI_ZC_host_t * host);

/* Begins to connect to @port, in the order of the network, of @host. Returns a socket that does not
 * block, or -1: it cannot be. */
int MPIDI_ZC_hosts_connect(const MPIDI_ZC_host_t * host, uint16_t port);

#endif /* ZC_HOSTS_H_INCLUDED */
