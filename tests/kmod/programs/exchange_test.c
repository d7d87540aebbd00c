/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange_test - what /dev/zc promises, on every kind of memory
 *
 * As root, in a machine of its own: it swaps, migrates and compacts, and some
 * pages' frames are taken out of use. See ktap.h for its options.
 */
#include "ktap.h"
#include "procfs.h"

#include <stdio.h>

static void set_up(bool fixtures_only)
{
    (void)fixtures_only;
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* Where every mapping gets huge pages there are no small ones to test with. */
    file_write("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
    /* Nor do pages stay those of one place where KSM merges: tests of it start it. */
    file_write("/sys/kernel/mm/ksm/run", "0");
}

int main(int argc, char **argv)
{
    return ktap_main(argc, argv, set_up);
}
