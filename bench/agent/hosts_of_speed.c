/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of ranks on hosts of different speed, in which the time of an iteration is a model: each
 * rank sleeps for as long as its host would need, if all its ranks computed.
 *
 *     time = WORK * max(1, ranks here / processors) / speed
 *
 * HOSTS says what a host has: "h1=4*2,h2=4*1" are 4 processors of speed 2, and 4 of speed 1. Then
 * each rank exchanges DOUBLES numbers with its two neighbours, and so the slowest host sets the
 * pace. Ranks sleep as well while they wait for a message: many of them can share a processor, and
 * nothing of the model is disturbed by it as long as they are idle together. Moves are real.
 *
 * usage: hosts_of_speed HOSTS WORK_MS DOUBLES UNTIL
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zcm/zcm.h>

enum { TAG = 1, NAME = 64, MOST_RANKS = 256 };

static void sleep_ms(double ms)
{
    const long ns = (long)(ms * 1e6);
    struct timespec rest = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&rest, &rest) != 0)
        continue;
}

/** @host's processors and their speed; ends the program if @hosts does not say. */
static void look_up(const char *hosts, const char *host, double *processors, double *speed)
{
    const size_t length = strlen(host);
    for (const char *at = hosts; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, host, length) == 0 &&
            sscanf(at + length, "=%lf*%lf", processors, speed) == 2)
            return;
    fprintf(stderr, "hosts_of_speed: nothing is said of %s in %s\n", host, hosts);
    exit(2);
}

static void wait_for(MPI_Request *requests, int count)
{
    for (int done = 0; MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE), !done;)
        sleep_ms(1);
}

static double time_here(const char *hosts, double work_ms)
{
    char mine[NAME] = "", all[MOST_RANKS][NAME];
    int ranks, here = 0;
    MPI_Request request;
    double processors, speed;
    gethostname(mine, sizeof mine - 1);
    MPI_Comm_size(zcm_world(), &ranks);
    MPI_Iallgather(mine, NAME, MPI_CHAR, all, NAME, MPI_CHAR, zcm_world(), &request);
    wait_for(&request, 1);
    for (int i = 0; i < ranks; i++)
        here += strcmp(all[i], mine) == 0;
    look_up(hosts, mine, &processors, &speed);
    const double crowd = here / processors;
    return work_ms * (crowd > 1 ? crowd : 1) / speed;
}

static void exchange(double *out, double *in, int doubles, int rank, int ranks)
{
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    MPI_Request requests[4];
    MPI_Irecv(in, doubles, MPI_DOUBLE, left, TAG, zcm_world(), &requests[0]);
    MPI_Irecv(in + doubles, doubles, MPI_DOUBLE, right, TAG, zcm_world(), &requests[1]);
    MPI_Isend(out, doubles, MPI_DOUBLE, left, TAG, zcm_world(), &requests[2]);
    MPI_Isend(out, doubles, MPI_DOUBLE, right, TAG, zcm_world(), &requests[3]);
    wait_for(requests, 4);
}

int main(int argc, char **argv)
{
    long i = 0;
    int rank, ranks, stop = 0;
    MPI_Init(&argc, &argv);
    if (zcm_init(&argc, &argv) != 0)
        return 1;
    MPI_Comm_rank(zcm_world(), &rank);
    MPI_Comm_size(zcm_world(), &ranks);
    if (argc != 5 || ranks > MOST_RANKS || ranks < 3) {
        fprintf(stderr, "usage: hosts_of_speed HOSTS WORK_MS DOUBLES UNTIL (3 to 256 ranks)\n");
        exit(2);
    }
    const double work_ms = strtod(argv[2], NULL);
    const int doubles = (int)strtol(argv[3], NULL, 10);
    double *out = calloc((size_t)doubles, sizeof *out),
           *in = calloc(2 * (size_t)doubles, sizeof *in);
    if (doubles < 1 || !out || !in || zcm_register("i", &i, 1, MPI_LONG) != 0 ||
        zcm_register("out", out, (size_t)doubles, MPI_DOUBLE) != 0)
        exit(1);
    for (; !stop; i++) {
        if (zcm_safe_point() != 0)
            exit(1);
        sleep_ms(time_here(argv[1], work_ms));
        exchange(out, in, doubles, rank, ranks);
        if (i % 8 == 7) {
            MPI_Request request;
            stop = rank == 0 && access(argv[4], F_OK) == 0;
            MPI_Ibcast(&stop, 1, MPI_INT, 0, zcm_world(), &request);
            wait_for(&request, 1);
        }
        if (rank == 0) {
            printf("iteration %ld at %.6f\n", i, MPI_Wtime());
            fflush(stdout);
        }
    }
    zcm_finalize();
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
