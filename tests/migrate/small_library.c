/* SPDX-License-Identifier: BSD-3-Clause */
/* A library of which there are several builds, each with another BUILD. */
int zcm_small_library(void);

int zcm_small_library(void)
{
    return BUILD;
}
