/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference for a move: a bare spawn of one process on another host, and a plain
 * MPI_Send of the same bytes to it.
 *
 *   send HOST BYTES ROUNDS     one line of JSON per round
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, child;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    const long bytes = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    char *buffer = malloc((size_t)bytes + 1);
    if (argc < 4 || !buffer)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(buffer, 1, (size_t)bytes);
    if (parent != MPI_COMM_NULL) {
        MPI_Recv(buffer, 0, MPI_BYTE, 0, 0, parent, MPI_STATUS_IGNORE);
        MPI_Recv(buffer, (int)bytes, MPI_BYTE, 0, 1, parent, MPI_STATUS_IGNORE);
        MPI_Send(buffer, 1, MPI_BYTE, 0, 2, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    for (int i = 0; i < atoi(argv[3]); i++) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "host", argv[1]);
        char *arguments[] = {argv[1], argv[2], argv[3], NULL};
        const double begin = MPI_Wtime();
        MPI_Comm_spawn(argv[0], arguments, 1, info, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
        MPI_Send(buffer, 0, MPI_BYTE, 0, 0, child);
        const double spawned = MPI_Wtime();
        MPI_Send(buffer, (int)bytes, MPI_BYTE, 0, 1, child);
        MPI_Recv(buffer, 1, MPI_BYTE, 0, 2, child, MPI_STATUS_IGNORE);
        const double sent = MPI_Wtime();
        printf("{\"spawn_ms\": %.3f, \"send_ms\": %.3f}\n", (spawned - begin) * 1e3,
               (sent - spawned) * 1e3);
        fflush(stdout);
        MPI_Comm_disconnect(&child);
        MPI_Info_free(&info);
    }
    MPI_Finalize();
    return 0;
}
