/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "mpidu_init_shm.h"
#include "zc_processors.h"

struct MPIDI_ZC_neighbour {
    struct MPIDI_ZC_neighbour *next;
    bool near;
    int words;
    uint64_t *mask;             /* owned */
};

static struct {
    uint64_t mask[MPIDI_ZC_PROCESSORS_WORDS];
    int words;
} own;

static MPIDI_ZC_neighbour_t *neighbours;

static int length_of(const uint64_t * mask, int words)
{
    while (words > 1 && mask[words - 1] == 0) {
        words--;
    }
    return words;
}

/* Finds this process's mask. Returns the words of a mask of this kernel, which are the same for
 * all ranks of a host. */
static int ask_kernel(void)
{
    memset(&own, 0, sizeof(own));
    /* libc's function does not return the number of bytes. */
    const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof(own.mask), own.mask);
    if (bytes <= 0) {
        /* Without an answer, every processor counts. */
        const long processors = sysconf(_SC_NPROCESSORS_CONF);
        for (long p = 0; p < MPL_MAX(processors, 1) &&
             p < MPIDI_ZC_PROCESSORS_WORDS * MPIDI_ZC_SHARE_WORD; p++) {
            MPIDI_ZC_share_add(own.mask, (int) p);
        }
    }
    own.words = length_of(own.mask, MPIDI_ZC_PROCESSORS_WORDS);
    return bytes <= 0 ? MPIDI_ZC_PROCESSORS_WORDS : (int) ((bytes + 7) / 8);
}

/* Each rank of a host has a cache line of shared memory, so ranks exchange as many words at a
 * time. */
int MPIDI_ZC_processors_init(void)
{
    int mpi_errno = MPI_SUCCESS;
    enum { AT_ONCE = MPIDU_INIT_SHM_BLOCK_SIZE / sizeof(uint64_t) };
    const int ranks = MPIR_Process.local_size;
    uint64_t *masks = NULL;

    const int words = ask_kernel();
    if (ranks == 1) {
        goto fn_exit;
    }
    const size_t row = (words + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
    MPIR_Assert(row <= MPIDI_ZC_PROCESSORS_WORDS);
    masks = MPL_calloc(ranks, row * sizeof(*masks), MPL_MEM_OTHER);
    MPIR_ERR_CHKANDJUMP(!masks, mpi_errno, MPI_ERR_OTHER, "**nomem");
    for (size_t first = 0; first < row; first += AT_ONCE) {
        mpi_errno = MPIDU_Init_shm_put(own.mask + first, AT_ONCE * sizeof(*masks));
        MPIR_ERR_CHECK(mpi_errno);
        mpi_errno = MPIDU_Init_shm_barrier();
        MPIR_ERR_CHECK(mpi_errno);
        for (int rank = 0; rank < ranks; rank++) {
            mpi_errno = MPIDU_Init_shm_get(rank, AT_ONCE * sizeof(*masks),
                                           masks + rank * row + first);
            MPIR_ERR_CHECK(mpi_errno);
        }
        mpi_errno = MPIDU_Init_shm_barrier();
        MPIR_ERR_CHECK(mpi_errno);
    }
    for (int rank = 0; rank < ranks; rank++) {
        if (rank != MPIR_Process.local_rank) {
            MPIR_ERR_CHKANDJUMP(!MPIDI_ZC_processors_add(masks + rank * row, (int) row, true),
                                mpi_errno, MPI_ERR_OTHER, "**nomem");
        }
    }

  fn_exit:
    MPL_free(masks);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

const uint64_t *MPIDI_ZC_processors_own(int *words)
{
    *words = own.words;
    return own.mask;
}

MPIDI_ZC_neighbour_t *MPIDI_ZC_processors_add(const uint64_t * mask, int words, bool near)
{
    MPIDI_ZC_neighbour_t *neighbour = MPL_calloc(1, sizeof(*neighbour), MPL_MEM_OTHER);
    if (neighbour) {
        MPIDI_ZC_processors_set(neighbour, mask ? mask : own.mask, mask ? words : own.words);
        if (!neighbour->mask) {
            MPL_free(neighbour);
            return NULL;
        }
        neighbour->near = near;
        neighbour->next = neighbours;
        neighbours = neighbour;
    }
    return neighbour;
}

void MPIDI_ZC_processors_set(MPIDI_ZC_neighbour_t * neighbour, const uint64_t * mask, int words)
{
    words = length_of(mask, words);
    uint64_t *copy = neighbour ? MPL_malloc(words * sizeof(*mask), MPL_MEM_OTHER) : NULL;
    if (copy) {
        memcpy(copy, mask, words * sizeof(*mask));
        MPL_free(neighbour->mask);
        neighbour->mask = copy;
        neighbour->words = words;
    }
}

void MPIDI_ZC_processors_remove(MPIDI_ZC_neighbour_t * neighbour)
{
    for (MPIDI_ZC_neighbour_t ** at = &neighbours; *at; at = &(*at)->next) {
        if (*at == neighbour) {
            *at = neighbour->next;
            MPL_free(neighbour->mask);
            MPL_free(neighbour);
            return;
        }
    }
}

static MPIDI_ZC_share_t share(bool near_only)
{
    /* What it is without any others; and if there is no memory to find out. */
    const int processors = MPIDI_ZC_share_count(own.mask, own.words);
    MPIDI_ZC_share_t share = {
        .kind = processors > 1 ? MPIDI_ZC_SHARE_TO_SPARE : MPIDI_ZC_SHARE_ENOUGH,
        .processors = processors,
        .ranks = 1,
    };
    int ranks = 1, words = own.words;

    for (const MPIDI_ZC_neighbour_t * n = neighbours; n; n = n->next) {
        if (n->near || !near_only) {
            ranks++;
            words = MPL_MAX(words, n->words);
        }
    }
    const size_t row = words * sizeof(uint64_t);
    uint64_t *masks = ranks > 1 ? MPL_calloc(ranks, row, MPL_MEM_OTHER) : NULL;
    if (masks) {
        uint64_t *at = masks;
        memcpy(at, own.mask, own.words * sizeof(uint64_t));
        for (const MPIDI_ZC_neighbour_t * n = neighbours; n; n = n->next) {
            if (n->near || !near_only) {
                at += words;
                memcpy(at, n->mask, n->words * sizeof(uint64_t));
            }
        }
        (void) MPIDI_ZC_share(masks, ranks, words, 0, &share);
        MPL_free(masks);
    }
    return share;
}

MPIDI_ZC_share_t MPIDI_ZC_processors_of_host(void)
{
    return share(true);
}

MPIDI_ZC_share_t MPIDI_ZC_processors_of_machine(void)
{
    return share(false);
}

void MPIDI_ZC_processors_free(void)
{
    while (neighbours) {
        MPIDI_ZC_processors_remove(neighbours);
    }
}
