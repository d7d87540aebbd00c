/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <sys/random.h>
#include "zc_upid.h"

int MPIDI_ZC_upid_draw(uint64_t * id)
{
    int mpi_errno = MPI_SUCCESS;

    MPIR_ERR_CHKANDJUMP2(getrandom(id, sizeof(*id), 0) != sizeof(*id), mpi_errno, MPI_ERR_OTHER,
                         "**zc_ucx", "**zc_ucx %s %s", "getrandom", strerror(errno));
    *id &= ~MPIDI_ZC_FOREIGN;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash(uint64_t sum, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        sum = (sum ^ (unsigned char) bytes[i]) * 0x100000001b3ULL;
    }
    return sum;
}

uint64_t MPIDI_ZC_own_host(void)
{
    uint64_t sum = 0xcbf29ce484222325ULL, machine;
    char text[256] = "";

    /* Names alone may repeat ("localhost"), and so may boots (containers). */
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        sum = hash(sum, text, fread(text, 1, sizeof(text), file));
        fclose(file);
    }
    machine = sum ^ sum << 32;
    if (gethostname(text, sizeof(text)) == 0) {
        sum = hash(sum, text, strnlen(text, sizeof(text)));
    }
    return machine >> 32 << 32 | (uint32_t) (sum ^ sum >> 32);
}
