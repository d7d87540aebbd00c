/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared library that does nothing. */
int zc_test_library(void);

int zc_test_library(void)
{
    return 0;
}
