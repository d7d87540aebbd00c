/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads of a rank keep all of its processors busy, as those of OpenMP would, while its main
 * thread receives short messages, which wake the landing thread. That one then looks a few times in
 * every 4 ms, not every 50 us: each look takes the time of one of those threads.
 */
#include "counter.h"
#include <pthread.h>
#include <sched.h>

enum { DATA = 1, STOP, LAST };
enum { SETTLE_MS = 500, MEASURE_MS = 2000, LOOK_MS = 4, LOOKS = 2, MOST_THREADS = 1024 };

static int over;

static void *work(void *arg)
{
    volatile double *value = arg;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        *value = *value * 0.999999 + 1e-9;
    return NULL;
}

static void compute_for(double seconds)
{
    for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
        ;
}

/** receive_until - takes what has come until @end; 0: until LAST has come */
static void receive_until(double end)
{
    for (int last = 0; end > 0 ? MPI_Wtime() < end : !last;) {
        int flag;
        MPI_Status status;
        MPI_Iprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
        if (flag) {
            MPI_Recv(NULL, 0, MPI_BYTE, 1, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            last = status.MPI_TAG == LAST;
        }
        compute_for(20e-6);
    }
}

static void send_until_told(void)
{
    for (int told = 0; !told;) {
        MPI_Send(NULL, 0, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        compute_for(100e-6);
        MPI_Iprobe(0, STOP, MPI_COMM_WORLD, &told, MPI_STATUS_IGNORE);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, 0, STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 0, LAST, MPI_COMM_WORLD);
}

static void receive_beside_threads(void)
{
    static pthread_t threads[MOST_THREADS];
    static double values[MOST_THREADS * 8];
    cpu_set_t set;
    struct counter looks = counter_open("thread_looks");

    CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "no affinity mask");
    const int nr = CPU_COUNT(&set) < MOST_THREADS ? CPU_COUNT(&set) : MOST_THREADS;
    for (int i = 0; i < nr; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &values[i * 8]) == 0, "no thread");
    receive_until(MPI_Wtime() + SETTLE_MS / 1e3);
    const unsigned long long before = counter_read(&looks);
    receive_until(MPI_Wtime() + MEASURE_MS / 1e3);
    const unsigned long long made = counter_read(&looks) - before;
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < nr; i++)
        pthread_join(threads[i], NULL);
    MPI_Send(NULL, 0, MPI_BYTE, 1, STOP, MPI_COMM_WORLD);
    receive_until(0);
    CHECK(made <= LOOKS * MEASURE_MS / LOOK_MS, "%llu looks in %d ms", made, MEASURE_MS);
    CHECK(before > 0, "the landing thread never looked");
    counter_close(&looks);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_FUNNELED);
    if (check_rank == 0)
        receive_beside_threads();
    else
        send_until_told();
    return check_finish();
}
