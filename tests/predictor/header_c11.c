/* SPDX-License-Identifier: BSD-3-Clause */

/* The header alone, first, in strict C11. */
#include "zcp/predictor.h"

_Static_assert(sizeof(zcp_envelope_t) == 24, "no hidden padding to initialise");
_Static_assert(sizeof(zcp_receive_t) == 32, "no hidden padding to initialise");

int header_c11_round_trip(void);
int header_c11_create_kind(int kind);

/* C++ could not even name a kind that does not exist. */
int header_c11_create_kind(int kind)
{
    const zcp_params_t params = {.size = sizeof(params), .kind = (zcp_kind_t)kind};
    zcp_t *engine = 0;
    const int status = zcp_create(&params, &engine);
    zcp_destroy(engine);
    return status;
}

int header_c11_round_trip(void)
{
    const zcp_params_t params = {.size = sizeof(params), .kind = ZCP_LAST_SIZE};
    const zcp_receive_t receive = {{1, 2, 3, 65536}, 0x7000};
    zcp_landing_t landing;
    zcp_t *engine;
    if (zcp_create(&params, &engine) != 0)
        return 0;
    zcp_receive(engine, &receive);
    const int known = zcp_arrival(engine, &receive.envelope, &landing);
    zcp_settle(engine, landing.claim, receive.addr);
    zcp_destroy(engine);
    return known == 1 && landing.addr == receive.addr;
}
