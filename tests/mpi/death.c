/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * death PHASE WHO [unnoticed]: one rank is killed while large messages go to a late receiver.
 * The other must not wait for ever nor see wrong data: the job ends, with an error.
 *
 *   announced   the header has arrived, the data is still at the sender (the caller
 *               sets a landing threshold of inf)
 *   flight      the data is under way into landing memory
 *   landed      the data has landed, the receive is not posted
 *   delivery    somewhere between post and completion
 *   idle        nothing is under way; the other waits for a message
 *   finalize    all others are in MPI_Finalize already, and must come out of it
 *
 * WHO: sender or receiver.
 *
 * unnoticed: the launcher does not see it.
 */
#include "hide.h"
#include <signal.h>
#include <sys/time.h>

enum { DATA = 2, NEVER = 3, ROUNDS = 1000 };
static const size_t bytes = 64 << 20;

/* Says so: a job that ends with an error for another reason has shown nothing. */
static void die(int number)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "rank %d is killed\n", check_rank);
    (void)number;
    (void)!write(STDOUT_FILENO, text, (size_t)length);
    kill(getpid(), SIGKILL);
}

static void die_in_ms(int ms)
{
    struct itimerval span = {.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 + 1}};
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &span, NULL);
}

static void wait_for_nothing(void)
{
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_until(const char *phase, int dies, char *buf)
{
    MPI_Request request;
    if (!strcmp(phase, "announced") || !strcmp(phase, "flight")) {
        pattern_fill(buf, bytes, 0);
        MPI_Isend(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, &request);
        if (dies)
            die_in_ms(!strcmp(phase, "announced") ? 50 : 2);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wait_for_nothing();
    } else if (!strcmp(phase, "landed")) {
        pattern_fill(buf, bytes, 0);
        MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        if (dies)
            die(0);
        wait_for_nothing();
    } else if (!strcmp(phase, "delivery")) {
        if (dies)
            die_in_ms(400);
        for (int i = 0; i < ROUNDS; i++) {
            pattern_fill(buf, bytes, (uint64_t)i);
            MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        }
    } else {
        if (dies)
            die(0);
        wait_for_nothing();
    }
}

static void receive_until(const char *phase, int dies, char *buf)
{
    if (!strcmp(phase, "idle")) {
        if (dies)
            die(0);
        wait_for_nothing();
    }
    if (dies)
        die_in_ms(!strcmp(phase, "flight") ? 2 : !strcmp(phase, "delivery") ? 400 : 100);
    for (int i = 0; i < ROUNDS; i++) {
        check_sleep_ms(!strcmp(phase, "delivery") ? 10 : 150);
        MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_content(buf, bytes, (uint64_t)i, "message of the dying");
    }
}

int main(int argc, char **argv)
{
    const int unnoticed = argc == 4 && !strcmp(argv[3], "unnoticed");
    if (unnoticed)
        hide_from_launcher();
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc == 3 || unnoticed, "usage: death PHASE sender|receiver [unnoticed]");
    const int dying = !strcmp(argv[2], "sender") ? 1 : 0;
    char *buf = check_malloc(bytes);
    memset(buf, 1, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(argv[1], "finalize")) {
        if (check_rank == dying) {
            check_sleep_ms(500);
            die(0);
        }
        MPI_Finalize();
        return 0;
    }
    if (check_rank == 1)
        send_until(argv[1], dying == 1, buf);
    else if (check_rank == 0)
        receive_until(argv[1], dying == 0, buf);
    printf("the job survived\n");
    return check_finish();
}
