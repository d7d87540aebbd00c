/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program whose partners change: first a butterfly, in which each rank talks to the one N/2 away,
 * then, once FILE exists, a halo, in which ranks 2k and 2k+1 talk to each other. With --turns A:B
 * they take turns: A iterations of butterfly, B of halo, and so on.
 *
 *     butterfly   0──2  1──3        halo   0──1  2──3
 *
 * A move of ranks from one host to another should take along those that exchange messages
 * in the phase to come. The sum that each rank ends with does not depend on where
 * it was; rank 0 prints it.
 */
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zcm/zcm.h>

enum { TAG = 1 };

struct options {
    long iterations, doubles, work, report;
    long butterflies, halos; /* of so many iterations each, in turn; 0: no turns */
    const char *until;       /* end when this file is there */
    const char *file;        /* become a halo when this file is there */
};

static struct options parse(int argc, char **argv)
{
    struct options o = {.iterations = 1000, .doubles = 8192, .work = 20};
    const struct option known[] = {
        {"iterations", required_argument, NULL, 'i'}, {"switch", required_argument, NULL, 's'},
        {"doubles", required_argument, NULL, 'd'},    {"work", required_argument, NULL, 'w'},
        {"report", required_argument, NULL, 'r'},     {"until", required_argument, NULL, 'u'},
        {"turns", required_argument, NULL, 't'},      {0}};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        long *number = c == 'i'   ? &o.iterations
                       : c == 'd' ? &o.doubles
                       : c == 'w' ? &o.work
                       : c == 'r' ? &o.report
                                  : NULL;
        if (number)
            *number = strtol(optarg, NULL, 10);
        else if (c == 'u')
            o.until = optarg;
        else if (c == 's')
            o.file = optarg;
        else if (c == 't' && sscanf(optarg, "%ld:%ld", &o.butterflies, &o.halos) == 2 &&
                 o.butterflies > 0 && o.halos > 0)
            continue;
        else {
            fprintf(stderr,
                    "usage: phases [--iterations N] [--switch FILE] [--doubles N] [--work N] "
                    "[--report N] [--until FILE] [--turns A:B]\n");
            exit(2);
        }
    }
    return o;
}

int main(int argc, char **argv)
{
    long i = 0;
    int rank, ranks, halo = 0;
    MPI_Init(&argc, &argv);
    if (zcm_init(&argc, &argv) != 0)
        return 1;
    const struct options o = parse(argc, argv);
    const long doubles = o.doubles;
    MPI_Comm_rank(zcm_world(), &rank);
    MPI_Comm_size(zcm_world(), &ranks);
    if (o.iterations < 1 || doubles < 1 || o.work < 0 || ranks % 2) {
        fprintf(stderr, "phases: bad numbers (and an even number of ranks is needed)\n");
        exit(2);
    }
    double *mine = malloc((size_t)doubles * sizeof *mine),
           *theirs = malloc((size_t)doubles * sizeof *theirs);
    if (!mine || !theirs)
        exit(1);
    for (long k = 0; k < doubles; k++)
        mine[k] = (double)(rank + 1) + (double)(k % 7);
    if (zcm_register("mine", mine, (size_t)doubles, MPI_DOUBLE) != 0 ||
        zcm_register("halo", &halo, 1, MPI_INT) != 0 || zcm_register("i", &i, 1, MPI_LONG) != 0)
        exit(1);
    zcm_total_safe_points(o.until ? 0 : o.iterations);
    for (; i < o.iterations; i++) {
        if (zcm_safe_point() != 0)
            exit(1);
        if (o.butterflies > 0)
            halo = i % (o.butterflies + o.halos) >= o.butterflies;
        else if (o.file && !halo && i % 8 == 0) {
            halo = rank == 0 && access(o.file, F_OK) == 0;
            MPI_Bcast(&halo, 1, MPI_INT, 0, zcm_world());
        }
        const int partner = halo ? rank ^ 1 : (rank + ranks / 2) % ranks;
        MPI_Sendrecv(mine, (int)doubles, MPI_DOUBLE, partner, TAG, theirs, (int)doubles, MPI_DOUBLE,
                     partner, TAG, zcm_world(), MPI_STATUS_IGNORE);
        for (long k = 0; k < doubles; k++)
            mine[k] = 0.5 * (mine[k] + theirs[k]);
        for (long w = 0; w < o.work; w++)
            for (long k = 1; k < doubles; k++)
                mine[k] = 0.999 * mine[k] + 0.001 * mine[k - 1];
        if (o.report > 0 && rank == 0 && i % o.report == 0) {
            printf("iteration %ld at %.6f\n", i, MPI_Wtime());
            fflush(stdout);
        }
        if (o.until && i % 16 == 15) {
            int stop = rank == 0 && access(o.until, F_OK) == 0;
            MPI_Bcast(&stop, 1, MPI_INT, 0, zcm_world());
            if (stop)
                break;
        }
    }
    double sum = 0, all = 0;
    for (long k = 0; k < doubles; k++)
        sum += mine[k];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, zcm_world());
    if (rank == 0) {
        printf("%ld iterations, sum %.17g\n", i, all);
        fflush(stdout);
    }
    zcm_finalize();
    MPI_Finalize();
    free(mine);
    free(theirs);
    return 0;
}
