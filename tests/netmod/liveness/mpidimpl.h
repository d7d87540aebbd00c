/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TEST_MPIDIMPL_H
#define ZC_TEST_MPIDIMPL_H

/* What zc_hosts.c and zc_liveness.c use of MPICH, and of the netmod. The macro names a header whose
 * place this file takes. */

#define ZC_IMPL_H_INCLUDED

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define _Static_assert static_assert
#define _Alignof alignof
#endif
#include "zc_wire.h"

#ifdef __cplusplus
extern "C" {
#endif

void *zc_test_malloc(size_t size);
#define MPL_malloc(size, class) zc_test_malloc(size)
#define MPL_free(p) free(p)
#define MPL_MAX(a, b) ((a) > (b) ? (a) : (b))
#define MPL_STATIC_INLINE_PREFIX __attribute__((unused)) static inline

extern struct zc_test_process {
    int rank;
} MPIR_Process;

extern struct zc_test_vci {
    struct {
        uint64_t unwatched;
    } stats;
} zc_test_vci;
#define MPIDI_ZC_VCI(number) zc_test_vci

#ifdef __cplusplus
}
#endif

#endif
