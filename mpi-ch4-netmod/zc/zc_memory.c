/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>

/* This file handles allocations of libmpi that the C library refuses.
 *
 * Much of MPICH never checks whether it got the memory that it asked for, above all in MPI_Init.
 * It would crash, or end silently before the process manager knows of it, which would then leave
 * the other processes waiting. So the linker directs libmpi's calls here (--wrap, Makefile.mk),
 * and those of the libraries that it contains. As long as MPI is not initialized, no caller could
 * handle an error, so a refusal ends the process, with a message and by a signal, which every
 * process manager notices. Later the caller gets the refusal as usual, and the first one is also
 * reported on stderr, so that whatever follows from it has a cause. A caller that asks for much
 * memory expects that it may be refused, so that is not reported. */

#define MUCH ((size_t) 1 << 20)

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
char *__real_strdup(const char *text);

#define WRAPPER __attribute__ ((visibility("hidden")))
WRAPPER void *__wrap_malloc(size_t bytes);
WRAPPER void *__wrap_calloc(size_t count, size_t bytes);
WRAPPER void *__wrap_realloc(void *old, size_t bytes);
WRAPPER void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
WRAPPER int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes);
WRAPPER char *__wrap_strdup(const char *text);

__attribute__ ((cold, noinline))
static void refused(size_t bytes)
{
    static int reported;
    const bool initialized =
        MPL_atomic_load_int(&MPIR_Process.mpich_state) == MPICH_MPI_STATE__INITIALIZED;
    const int saved = errno;
    char text[160];

    if (!initialized || (bytes < MUCH && !__atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED))) {
        int length = snprintf(text, sizeof(text), "zc: rank %d: out of memory: MPI asked for %zu "
                              "bytes%s\n", MPIR_Process.rank, bytes,
                              initialized ? "" : " to initialize itself");
        if (write(STDERR_FILENO, text, length) < 0) {
            /* There is no other way to report it. */
        }
    }
    if (!initialized) {
        abort();
    }
    errno = saved;
}

static inline void *checked(void *allocated, size_t bytes)
{
    if (unlikely(!allocated) && bytes > 0) {
        refused(bytes);
    }
    return allocated;
}

void *__wrap_malloc(size_t bytes)
{
    return checked(__real_malloc(bytes), bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return checked(__real_calloc(count, bytes), count * bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return checked(__real_realloc(old, bytes), bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return checked(__real_aligned_alloc(alignment, bytes), bytes);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    int err = __real_posix_memalign(out, alignment, bytes);
    (void) checked(err == ENOMEM ? NULL : out, bytes);
    return err;
}

char *__wrap_strdup(const char *text)
{
    return checked(__real_strdup(text), strlen(text) + 1);
}
