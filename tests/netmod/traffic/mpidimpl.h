/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TEST_MPIDIMPL_H
#define ZC_TEST_MPIDIMPL_H

/* What zc_traffic.c uses of MPICH. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

extern struct zc_test_process {
    int rank, size;
} MPIR_Process;
extern struct zc_test_global {
    int n_vcis;
} MPIDI_global;

#ifdef __cplusplus
}
#endif

#endif
