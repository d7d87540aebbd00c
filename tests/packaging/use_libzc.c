/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that needs nothing but libzc and its header. */
#include <stdio.h>
#include <zc/zc.h>

int main(void)
{
    printf("libzc %s\n", zc_version());
    return 0;
}
