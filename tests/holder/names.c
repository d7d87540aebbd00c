/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program whose rank 0 asks the process manager all the time: for a name that it has
 * published, and for one that nobody has.
 *
 *     names FILE
 *
 * goes on until FILE is there. Each rank prints "rank R round N" once a second, and "rank R ends
 * after N rounds".
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank;

static void fail(const char *what, long round)
{
    fprintf(stderr, "names: rank %d: %s in round %ld\n", rank, what, round);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

/** ask - the answers are those to these questions */
static void ask(const char *name, const char *port, long round)
{
    char found[MPI_MAX_PORT_NAME] = "";
    int class = MPI_SUCCESS;
    if (MPI_Lookup_name(name, MPI_INFO_NULL, found) != MPI_SUCCESS || strcmp(found, port) != 0)
        fail("a name has changed", round);
    MPI_Error_class(MPI_Lookup_name("zc-that-nobody-has", MPI_INFO_NULL, found), &class);
    if (class != MPI_ERR_NAME)
        fail("a name that nobody has is there", round);
}

int main(int argc, char **argv)
{
    char name[64];
    static const char port[] = "no-port";
    time_t printed = 0;
    int is_over = 0;
    long round = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    snprintf(name, sizeof name, "zc-names-%ld", (long)getpid());
    if (rank == 0 && MPI_Publish_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS)
        fail("a name cannot be published", 0);
    while (!is_over) {
        round++;
        if (rank == 0) {
            ask(name, port, round);
            is_over = argc < 2 || access(argv[1], F_OK) == 0;
        }
        MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (time(NULL) != printed) {
            printed = time(NULL);
            printf("rank %d round %ld\n", rank, round);
            fflush(stdout);
        }
    }
    if (rank == 0 && MPI_Unpublish_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS)
        fail("a name cannot be taken back", 0);
    printf("rank %d ends after %ld rounds\n", rank, round);
    MPI_Finalize();
    return 0;
}
