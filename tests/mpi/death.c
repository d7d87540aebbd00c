/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death sender|receiver: one rank kills itself while large messages go to a late
 * receiver. The other must not wait for ever: the job ends, with an error.
 */
#include "check.h"
#include <signal.h>
#include <sys/time.h>

enum { DATA = 2 };
static const size_t bytes = 64 << 20;

static void die(int number)
{
    (void)number;
    kill(getpid(), SIGKILL);
}

static void die_in_ms(int ms)
{
    struct itimerval span = {.it_value = {.tv_usec = ms * 1000}};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &span, NULL);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    const int sender_dies = argc > 1 && !strcmp(argv[1], "sender");
    char *buf = check_malloc(bytes);
    memset(buf, 1, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == (sender_dies ? 1 : 0))
        die_in_ms(30);
    for (int i = 0; i < 1000; i++) {
        if (check_rank == 1) {
            MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        } else if (check_rank == 0) {
            check_sleep_ms(10);
            MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    printf("the job survived\n");
    return check_finish();
}
