/* SPDX-License-Identifier: BSD-3-Clause */
/* zc.h first and alone: it must be self-contained C11. */
#include <zc/zc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLen = 1 << 20 };

static int fail(const char *what, int code)
{
    fprintf(stderr, "%s: %d\n", what, code);
    return 1;
}

int main(void)
{
    zc_params_t params = {.size = sizeof(params)};
    zc_t *zc = NULL;
    zc_landing_t *landing = NULL;
    zc_delivery_t how;
    char *buffer = malloc(kLen);
    int err = zc_create(&params, &zc);
    if (err || !buffer)
        return fail("create", err);
    memset(buffer, 1, kLen);
    err = zc_landing_acquire(zc, kLen, buffer, &landing);
    if (err)
        return fail("acquire", err);
    memset(zc_landing_data(landing), 2, kLen);
    err = zc_deliver(zc, landing, buffer, kLen, &how);
    if (err || how.bytes_copied + how.bytes_rebound != kLen)
        return fail("deliver", err);
    for (int i = 0; i < kLen; i++)
        if (buffer[i] != 2)
            return fail("wrong byte at", i);
    printf("zc %s: %zu bytes rebound, %zu copied (%s)\n", zc_version(), how.bytes_rebound,
           how.bytes_copied, zc_reason_name(how.reason));
    zc_destroy(zc);
    free(buffer);
    return 0;
}
