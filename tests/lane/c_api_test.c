/* SPDX-License-Identifier: BSD-3-Clause */
/* The header is C11, and the library as users see it works: a frame from one context to another. */
#include <zcl/lane.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static const unsigned char secret[ZCL_SECRET_BYTES] = {42};

static zcl_event_t next(zcl_t *context, zcl_event_type_t type)
{
    zcl_event_t event;
    do {
        memset(&event, 0, sizeof event);
        if (zcl_poll(context, &event, 1, 10000000000LL) != 1)
            break;
    } while (event.type != type);
    return event;
}

int main(void)
{
    zcl_params_t params = {.size = sizeof params, .secret = secret};
    zcl_t *a = NULL, *b = NULL;
    zcl_lane_t *lane = NULL;
    struct sockaddr_in where;
    socklen_t len = sizeof where;
    char out[1000], ok = 0;
    memset(out, 7, sizeof out);
    zcl_frame_t frame = {.id = 5, .len = sizeof out, .page_class = 16};

    if (zcl_create(&params, &a) || zcl_create(&params, &b) ||
        zcl_address(b, (struct sockaddr *)&where, &len) ||
        zcl_connect(a, (struct sockaddr *)&where, len, NULL, &lane) ||
        zcl_send(lane, &frame, out, NULL)) {
        fputs("cannot send\n", stderr);
    } else {
        zcl_event_t event = next(b, ZCL_EVENT_ARRIVED);
        ok = event.type == ZCL_EVENT_ARRIVED && event.frame.id == 5 &&
             memcmp(event.data, out, sizeof out) == 0 && zcl_release(event.lane, event.data) == 0;
    }
    zcl_destroy(a);
    zcl_destroy(b);
    return ok ? 0 : 1;
}
