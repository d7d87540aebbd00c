/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swap_equally DEVICE: swapon with the same priority for each, so that the kernel uses all in
 * turn. busybox's swapon has no option for that.
 */
#include <stdio.h>
#include <sys/swap.h>

int main(int argc, char **argv)
{
    if (argc != 2 || swapon(argv[1], SWAP_FLAG_PREFER | 1)) {
        perror("swapon");
        return 1;
    }
    return 0;
}
