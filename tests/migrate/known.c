/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * known FILE
 *
 * At every safe point each rank knows as many processes of other worlds, by ch4:zc's counter, as
 * there are other ranks: those that started the job, that ranks have left and that have helped to
 * link the new world have ended, and must not count among those that share the processors. It ends
 * once FILE exists.
 */
#include "../mpi/counter.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zcm/zcm.h>

int main(int argc, char **argv)
{
    int stop = 0;
    long step = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_ranks);
    CHECK(argc == 2, "known FILE");
    struct counter known = counter_open_class("foreign_known", MPI_T_PVAR_CLASS_LEVEL);
    CHECK(zcm_init(&argc, &argv) == 0 && zcm_register("step", &step, 1, MPI_LONG) == 0, "libzcm");
    for (; !stop; step++) {
        CHECK(zcm_safe_point() == 0, "safe point");
        CHECK(counter_read(&known) == (unsigned)check_ranks - 1, "knows %llu processes in step %ld",
              counter_read(&known), step);
        stop = check_rank == 0 && access(argv[1], F_OK) == 0;
        MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(1000);
    }
    if (check_rank == 0)
        printf("%d ranks know each other, and no others: all right\n", check_ranks);
    zcm_finalize();
    counter_close(&known);
    MPI_Finalize();
    return 0;
}
