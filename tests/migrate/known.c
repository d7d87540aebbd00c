/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * known FILE
 *
 * At every safe point each rank knows as many processes of other worlds, by ch4:zc's counter, as
 * there are other ranks: those that started the job, that ranks have left and that have helped to
 * link the new world have ended, and must not count among those that share the processors. It ends
 * once FILE exists.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zcm/zcm.h>

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "rank %d: ", rank);                                                    \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int rank;

static unsigned long long known(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    CHECK(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS, "cannot read the counter");
    return value;
}

int main(int argc, char **argv)
{
    int ranks, level, index, count, stop = 0;
    long step = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc == 2, "known FILE");
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level) == MPI_SUCCESS &&
              MPI_T_pvar_session_create(&session) == MPI_SUCCESS &&
              MPI_T_pvar_get_index("ch4_zc_foreign_known", MPI_T_PVAR_CLASS_LEVEL, &index) ==
                  MPI_SUCCESS &&
              MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS,
          "no counter");
    CHECK(zcm_init(&argc, &argv) == 0 && zcm_register("step", &step, 1, MPI_LONG) == 0, "libzcm");
    for (; !stop; step++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        CHECK(known(session, handle) == (unsigned)ranks - 1, "knows %llu processes in step %ld",
              known(session, handle), step);
        stop = rank == 0 && access(argv[1], F_OK) == 0;
        MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(1000);
    }
    if (rank == 0)
        printf("%d ranks know each other, and no others: all right\n", ranks);
    zcm_finalize();
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
