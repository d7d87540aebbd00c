/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that received a message is the program's own, to free, unmap, resize,
 * protect, advise on or fork with, whatever pages the library put there; and
 * what comes next is right again.
 */
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { GO = 1, DATA = 2, TRAINING = 4, ROUNDS = 3 };
static const size_t bytes = 2 << 20;

static int messages; /* received or sent so far: the seed of the next */

static void receive(void *buf)
{
    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
    check_sleep_ms(8);
    MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_content(buf, bytes, check_seed + (uint64_t)messages, "reused memory");
    messages++;
}

static void *map(void)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
    return p;
}

static void *trained(void *buf)
{
    for (int i = 0; i < TRAINING; i++)
        receive(buf);
    return buf;
}

static void free_it(void)
{
    for (int i = 0; i < 3; i++) {
        void *p = trained(check_malloc(bytes));
        free(p);
    }
}

static void unmap_it(void)
{
    for (int i = 0; i < 3; i++) {
        void *p = trained(map());
        CHECK(munmap(p, bytes) == 0, "munmap: %s", strerror(errno));
        /* A stray mapping at a predicted, now free address must not be written. */
        unsigned char *q =
            mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(q == p, "mmap: %s", strerror(errno));
        void *other = check_malloc(bytes);
        receive(other);
        for (size_t b = 0; b < bytes; b++)
            CHECK(q[b] == 0, "byte %zu of fresh memory at an old buffer's address is set", b);
        free(other);
        munmap(q, bytes);
    }
}

static void resize_it(void)
{
    char *p = trained(check_malloc(bytes));
    p = realloc(p, 3 * bytes);
    CHECK(p, "realloc");
    check_content(p, bytes, check_seed + (uint64_t)messages - 1, "grown buffer");
    receive(p + 64);
    p = realloc(p, bytes / 2);
    CHECK(p, "realloc");
    free(p);

    /*
     * Rebinding by mremap may leave several mappings where there was one, and the
     * kernel resizes only one at a time: EFAULT is a known limit (realloc copes).
     */
    void *q = trained(map());
    void *moved = mremap(q, bytes, 2 * bytes, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED || errno == EFAULT, "mremap: %s", strerror(errno));
    if (moved == MAP_FAILED) {
        check_content(q, bytes, check_seed + (uint64_t)messages - 1, "buffer that stayed");
        receive(q);
        munmap(q, bytes);
    } else {
        check_content(moved, bytes, check_seed + (uint64_t)messages - 1, "moved buffer");
        receive(moved);
        munmap(moved, 2 * bytes);
    }
}

static void protect_it(void)
{
    char *p = trained(map());
    CHECK(mprotect(p, bytes, PROT_READ) == 0, "mprotect: %s", strerror(errno));
    void *other = check_malloc(bytes);
    receive(other); /* the prediction is the protected buffer */
    check_content(p, bytes, check_seed + (uint64_t)messages - 2, "protected buffer");
    CHECK(mprotect(p, bytes, PROT_READ | PROT_WRITE) == 0, "mprotect: %s", strerror(errno));
    receive(p);

    /* A buffer whose inner pages are mapped differently from the outer. */
    CHECK(madvise(p + bytes / 4, bytes / 4, MADV_DONTNEED) == 0, "madvise: %s", strerror(errno));
    for (size_t b = bytes / 4; b < bytes / 2; b++)
        CHECK(p[b] == 0, "dropped memory is not zero");
    receive(p);
    CHECK(madvise(p, bytes, MADV_DONTFORK) == 0, "madvise: %s", strerror(errno));
    receive(p);
    munmap(p, bytes);
    free(other);
}

/* Memory that rebinding must refuse, and copying must serve. */
static void share_it(void)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
    trained(p);
    const uint64_t last = check_seed + (uint64_t)messages - 1;
    pid_t child = fork();
    if (child == 0) {
        /* The child must see what the parent received: it is shared. */
        int wrong = pattern_find_error(p, bytes, last) != bytes;
        memset(p, 0x77, bytes);
        _exit(wrong);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child sees wrong shared memory");
    CHECK(*(unsigned char *)p == 0x77, "parent does not see the child's write");
    receive(p);
    munmap(p, bytes);
}

static void fork_after_it(void)
{
    unsigned char *p = trained(check_malloc(bytes));
    int to_child[2], to_parent[2];
    char byte = 0;
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0, "pipe: %s", strerror(errno));
    const uint64_t seen = check_seed + (uint64_t)messages - 1;
    pid_t child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {
        int wrong = pattern_find_error(p, bytes, seen) != bytes;
        /* The parent receives again into its copy; ours must not change. */
        if (write(to_parent[1], &byte, 1) != 1 || read(to_child[0], &byte, 1) != 1)
            _exit(2);
        wrong |= pattern_find_error(p, bytes, seen) != bytes;
        memset(p, 0x11, bytes);
        _exit(wrong);
    }
    CHECK(read(to_parent[0], &byte, 1) == 1, "child is gone");
    receive(p); /* pages shared copy-on-write with the child */
    receive(p);
    CHECK(write(to_child[1], &byte, 1) == 1, "child is gone");
    int status;
    CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
    CHECK(status == 0, "the child saw wrong data (status %d)", status);
    check_content(p, bytes, check_seed + (uint64_t)messages - 1, "parent's memory after fork");
    receive(p);
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(to_parent[i]);
    }
    free(p);
}

static void serve(int count)
{
    char *buf = check_malloc(bytes);
    for (int i = 0; i < count; i++) {
        pattern_fill(buf, bytes, check_seed + (uint64_t)i);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
    }
    free(buf);
}

int main(int argc, char **argv)
{
    /* Messages received in one round of the cases below. */
    const int per_round = 3 * TRAINING + 3 * (TRAINING + 1) + 2 * (TRAINING + 1) + (TRAINING + 4) +
                          (TRAINING + 1) + (TRAINING + 3);
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (check_rank == 0) {
        for (int round = 0; round < ROUNDS; round++) {
            free_it();
            unmap_it();
            resize_it();
            protect_it();
            share_it();
            fork_after_it();
        }
        CHECK(messages == ROUNDS * per_round, "received %d messages", messages);
    } else if (check_rank == 1) {
        serve(ROUNDS * per_round);
    }
    return check_finish();
}
