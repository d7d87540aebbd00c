/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits MIB: the process may map MIB more when it calls MPI_Init (ulimit -v). Half of
 * that can be had in one piece afterwards, and late messages arrive right.
 *
 * limits locked MIB: it locks all its memory, and what it will map (mlockall), as an ordinary user
 * that may lock MIB more than what is mapped; where the limit cannot be raised, what it will map
 * only. MPI_Init succeeds, and late messages arrive right.
 */
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { GO = 1, DATA = 2, MESSAGES = 8 };
static const size_t bytes = 1 << 20;

static size_t mapped_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%zu", &pages) != 1)
        exit(1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, size_t most)
{
    const struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    if (setrlimit(resource, &limit) != 0) {
        perror("setrlimit");
        exit(1);
    }
}

static void exchange(void)
{
    char *buf = check_malloc(bytes);
    for (int i = 0; i < MESSAGES; i++) {
        if (check_rank == 1) {
            pattern_fill(buf, bytes, check_seed + (uint64_t)i);
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        } else {
            memset(buf, 0, bytes);
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
            check_sleep_ms(100);
            MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_content(buf, bytes, check_seed + (uint64_t)i, "under limits");
        }
    }
    free(buf);
}

/* What keeps this process from being held to its limit; NULL: nothing. */
static const char *lock_all(size_t more)
{
    enum { NOBODY = 65534 };
    const rlim_t most = mapped_bytes() + more;
    const struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    const int raised = setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
    /* The stacks of libraries' threads are locked, too. */
    pthread_attr_t small;
    if (pthread_attr_init(&small) != 0 || pthread_attr_setstacksize(&small, 256 * KIB) != 0 ||
        pthread_setattr_default_np(&small) != 0)
        return "its stacks are too large to be locked";
    /* In a user namespace of one user there is no other, and no right to lock either. */
    if (geteuid() == 0)
        (void)(syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) == 0 &&
               syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0);
    if (mlockall((raised ? MCL_CURRENT : 0) | MCL_FUTURE) != 0)
        return "it cannot lock its memory (mlockall)";
    void *beyond = mmap(NULL, most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (beyond == MAP_FAILED)
        return NULL;
    munmap(beyond, most);
    return "this process may lock more than its limit";
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "locked") == 0) {
        const char *unlimited = lock_all(strtoull(argv[2], NULL, 0) * MIB);
        check_init(&argc, &argv, MPI_THREAD_SINGLE);
        int any = unlimited != NULL;
        MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any)
            check_skip("%s", unlimited ? unlimited : "another rank may lock more than its limit");
        exchange();
        return check_finish();
    }
    const size_t most = argc > 1 ? strtoull(argv[1], NULL, 0) * MIB : 6000 * MIB;
    limit(RLIMIT_AS, mapped_bytes() + most);
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    void *half = malloc(most / 2);
    CHECK(half, "of %zu MiB of addresses not even half is left", most / MIB);
    free(half);
    exchange();
    return check_finish();
}
