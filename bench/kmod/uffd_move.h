/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BENCH_UFFD_MOVE_H
#define ZC_BENCH_UFFD_MOVE_H

/* UFFDIO_MOVE, of Linux 6.8: include/uapi/linux/userfaultfd.h of that or later. */

#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>

struct move {
    uint64_t to, from, len, mode;
    int64_t moved;
};
#define MOVE_FEATURE (1ull << 16)
#define MOVE_IOCTL _IOWR(UFFDIO, 0x05, struct move)

#endif
