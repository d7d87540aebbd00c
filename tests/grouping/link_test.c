/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <zcp/grouping.h>

/* Every public call is exported by the library and usable from C. */
int main(void)
{
    const uint32_t text[] = {1, 2, 3, 1, 2, 3, 1, 2, 3};
    const zcp_flow_t flow = {.src = 1, .dst = 2, .bytes = 10, .messages = 1};
    uint32_t out[4];
    zcp_groups_t *g = NULL;
    zcp_groups_params_t params = {.size = sizeof(params), .ranks = 4};
    zcp_groups_stats_t stats = {.size = sizeof(stats)};
    zcp_patterns_t *p = NULL;
    zcp_pattern_t one;
    const zcp_event_t event = {.src = 0, .dst = 1, .bytes = 1};
    int ok = zcp_groups_create(&params, &g) == 0;

    if (ok) {
        zcp_groups_event(g, &event);
        ok = zcp_groups_forecast(g, NULL, 0) == 1 && zcp_groups_expect(g, NULL, 0) >= 0 &&
             zcp_groups_cut(g, 4, out) > 0 && zcp_groups_around(g, 0, 2, out) > 0 &&
             zcp_groups_stats(g, &stats) == 0 && stats.events == 1;
    }
    zcp_groups_destroy(g);
    ok = ok && zcp_patterns_find(text, 9, NULL, &p) == 0;
    if (p) {
        ok = ok && zcp_patterns_end(p) == ZCP_PATTERNS_COMPLETE && zcp_patterns_count(p) > 0 &&
             zcp_patterns_get(p, 0, &one) == 0;
        zcp_patterns_cost(p, NULL, NULL);
    }
    zcp_patterns_destroy(p);
    ok = ok && zcp_fundamental_period(text, 9) == 3 && zcp_flows_cut(&flow, 1, 4, 2, out) == 3 &&
         zcp_flows_around(&flow, 1, 4, 2, 4, out) == 2 &&
         strcmp(zcp_groups_kind_name(ZCP_GROUPS_MATRIX), "matrix") == 0 &&
         zcp_groups_kind_parse("basic") == ZCP_GROUPS_BASIC;
    if (!ok)
        fprintf(stderr, "a public call failed\n");
    return !ok;
}
