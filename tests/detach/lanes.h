/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LANES_H
#define LANES_H

/* Connections of libzclane for long messages, one for each peer, as the netmod has them beside UCX:
 * sockets of their own, and a thread or a ring of io_uring. They are destroyed and made again with
 * the rest. The lower rank connects. Until a lane is open, and without lanes, long messages go by
 * UCX. */

#include <netinet/in.h>
#include <zcl/lane.h>

struct rank;
struct link;

enum { LANES_BYTES = 128 << 10 }; /* from here on a message goes by the lane */

/* What a peer needs to connect. */
typedef struct sockaddr_in lanes_address_t;

/* Listens. Without a way (zcl_way_t) in @rank it does nothing. */
void lanes_open(struct rank *rank);

/* Connects to the peer of @link, if that is for this side to do. */
void lanes_connect(struct link *link);

/* Hands @length bytes over. False: there is no lane, or none yet. */
_Bool lanes_send(struct link *link, uint64_t number, const void *data, size_t length, void *token);

/* Takes what has happened. */
void lanes_poll(struct rank *rank);

void lanes_close_one(struct link *link);

/* Closes all of them, and destroys the listener and the thread or ring. */
void lanes_close(struct rank *rank);

#endif
