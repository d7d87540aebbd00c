/* SPDX-License-Identifier: BSD-3-Clause */
#include <zcp/grouping.h>

/* The header compiles as C11, and an engine can be used from it. */
int header_c11_round_trip(void);

int header_c11_round_trip(void)
{
    zcp_groups_params_t params = {.size = sizeof(params), .ranks = 4, .period_events = 2};
    zcp_groups_t *g = NULL;
    uint32_t group_of[4];
    int ok = zcp_groups_create(&params, &g) == 0;
    for (int i = 0; ok && i < 8; i++) {
        const zcp_event_t event = {.src = 0, .dst = 1, .bytes = 100};
        zcp_groups_event(g, &event);
    }
    ok = ok && zcp_groups_cut(g, 2, group_of) == 3 && group_of[0] == group_of[1];
    zcp_groups_destroy(g);
    return ok;
}
