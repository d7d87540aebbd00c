/* SPDX-License-Identifier: BSD-3-Clause */
#include "lanes.h"
#include "link.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

static const unsigned char secret[ZCL_SECRET_BYTES] = "of tests, which hide nothing";

/* The address of the first interface that is no loopback, or that. */
static lanes_address_t own_address(void)
{
    lanes_address_t found = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0) {
        die("no interfaces");
    }
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET &&
            !(one->ifa_flags & IFF_LOOPBACK)) {
            memcpy(&found, one->ifa_addr, sizeof(found));
            break;
        }
    }
    freeifaddrs(all);
    found.sin_port = 0;
    return found;
}

void lanes_open(rank_t *rank)
{
    socklen_t length = sizeof(rank->lanes_address);
    const lanes_address_t local = own_address();
    const zcl_params_t params = {
        .size = sizeof(params),
        .way = rank->lanes_way,
        .hello_timeout_ms = 60000, /* on a busy machine a process may not run for seconds */
        .local = (const struct sockaddr *)&local,
        .local_len = sizeof(local),
        .secret = secret,
        .name = (uint64_t)rank->incarnation << 32 | rank->self,
    };
    if (rank->lanes_way == ZCL_WAY_AUTO) {
        return;
    }
    const int err = zcl_create(&params, &rank->lanes);
    if (err != 0) {
        die("zcl_create: %s", strerror(-err));
    }
    if (zcl_address(rank->lanes, (struct sockaddr *)&rank->lanes_address, &length) != 0) {
        die("zcl_address");
    }
}

void lanes_connect(link_t *link)
{
    lanes_address_t address;
    if (!link->rank->lanes || link->rank->self > link->peer) {
        return;
    }
    memcpy(&address, link->address, sizeof(address));
    const int err = zcl_connect(link->rank->lanes, (const struct sockaddr *)&address,
                                sizeof(address), secret, &link->lane);
    if (err != 0) {
        die("zcl_connect: %s", strerror(-err));
    }
}

_Bool lanes_send(link_t *link, uint64_t number, const void *data, size_t length, void *token)
{
    const zcl_frame_t frame = {
        .id = number,
        .len = length,
        .page_class = ZCL_CLASS_NONE,
        .tag = link->rank->self,
    };
    if (!link->lane_open || length < LANES_BYTES) {
        return false;
    }
    const int err = zcl_send(link->lane, &frame, data, token);
    if (err != 0) {
        die("zcl_send: %s", strerror(-err));
    }
    return true;
}

static link_t *link_of(rank_t *rank, const zcl_lane_t *lane)
{
    for (uint32_t peer = 0; peer < rank->size; peer++) {
        if (rank->links[peer].lane == lane) {
            return &rank->links[peer];
        }
    }
    die("an event of a lane that has been closed");
}

static void broken(link_t *link, int status)
{
    if (link->state == LINK_OPEN && !link->last) {
        die("rank %u has lost its lane to rank %u: %s", link->rank->self, link->peer,
            strerror(-status));
    }
    lanes_close_one(link);
}

static void take(rank_t *rank, const zcl_event_t *event)
{
    link_t *link;
    switch (event->type) {
    case ZCL_EVENT_ACCEPTED:
        link = &rank->links[(uint32_t)event->name];
        lanes_close_one(link);
        link->lane = event->lane;
        link->lane_open = true;
        break;
    case ZCL_EVENT_OPENED:
        link_of(rank, event->lane)->lane_open = true;
        break;
    case ZCL_EVENT_ARRIVED:
        link = link_of(rank, event->lane);
        link_long_arrived(link, event->frame.id, event->data, event->frame.len);
        if (event->landed) {
            (void)zcl_release(event->lane, event->data);
        }
        break;
    case ZCL_EVENT_SENT:
        link_long_sent(event->token, event->status);
        break;
    case ZCL_EVENT_BROKEN:
        broken(link_of(rank, event->lane), event->status);
        break;
    case ZCL_EVENT_NONE:
        break;
    }
}

void lanes_poll(rank_t *rank)
{
    zcl_event_t events[16];
    int nr;
    while (rank->lanes && (nr = zcl_poll(rank->lanes, events, 16, 0)) > 0) {
        for (int i = 0; i < nr; i++) {
            take(rank, &events[i]);
        }
    }
}

void lanes_close_one(link_t *link)
{
    if (link->lane) {
        (void)zcl_close(link->lane);
    }
    link->lane = NULL;
    link->lane_open = false;
}

void lanes_close(rank_t *rank)
{
    for (uint32_t peer = 0; peer < rank->size; peer++) {
        lanes_close_one(&rank->links[peer]);
    }
    zcl_destroy(rank->lanes);
    rank->lanes = NULL;
}
