/* SPDX-License-Identifier: BSD-3-Clause */
/* What hwloc is told to leave out, as the program finds it when MPI has been initialised. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *found = getenv("HWLOC_COMPONENTS");
    printf("HWLOC_COMPONENTS: %s\n", found ? found : "none");
    MPI_Finalize();
    return 0;
}
