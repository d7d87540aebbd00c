/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that return errors, to a program that goes on: what fails at the sender is no message, what
 * fails at the receiver took one. Those after it are still the ones they are. */
#include "expect.h"

static int in[64], out[64];
static int tag = 1;
enum { NR_FAILURES = 8 };

static void must_fail(int code, const char *what)
{
    if (code == MPI_SUCCESS) {
        fprintf(stderr, "%s did not fail\n", what);
        abort();
    }
}

/* Each of these once, to the rank that then receives one message with the same tag. */
static void fail_to_send(int how, int to)
{
    MPI_Request request;
    const int none = -1; /* so many elements are an error */
    switch (how) {
    case 0:
        must_fail(MPI_Send(out, none, MPI_INT, to, tag, MPI_COMM_WORLD), "MPI_Send");
        break;
    case 1:
        must_fail(MPI_Ssend(out, none, MPI_INT, to, tag, MPI_COMM_WORLD), "MPI_Ssend");
        break;
    case 2:
        must_fail(MPI_Isend(out, none, MPI_INT, to, tag, MPI_COMM_WORLD, &request), "MPI_Isend");
        break;
    case 3:
        must_fail(MPI_Sendrecv(out, none, MPI_INT, to, tag, in, 1, MPI_INT, to, tag, MPI_COMM_WORLD,
                               MPI_STATUS_IGNORE),
                  "MPI_Sendrecv");
        break;
    case 4:
        must_fail(MPI_Sendrecv_replace(out, none, MPI_INT, to, tag, to, tag, MPI_COMM_WORLD,
                                       MPI_STATUS_IGNORE),
                  "MPI_Sendrecv_replace");
        break;
    case 5:
        must_fail(MPI_Send(out, 1, MPI_INT, to, -7, MPI_COMM_WORLD), "MPI_Send, tag");
        break;
    case 6:
        must_fail(MPI_Send(out, 1, MPI_INT, size, tag, MPI_COMM_WORLD), "MPI_Send, rank");
        break;
    default:
        must_fail(MPI_Send(out, 1, MPI_INT, to, tag, MPI_COMM_NULL), "MPI_Send, communicator");
        must_fail(MPI_Recv(in, 1, MPI_INT, to, tag, MPI_COMM_NULL, MPI_STATUS_IGNORE),
                  "MPI_Recv, communicator");
    }
}

static void failed_sends(void)
{
    for (int how = 0; how < NR_FAILURES; how++, tag++) {
        if (rank % 2 == 0) {
            fail_to_send(how, rank + 1);
            MPI_Send(out, 3, MPI_INT, rank + 1, tag, MPI_COMM_WORLD);
            MPI_Send(out, 5, MPI_INT, rank + 1, tag, MPI_COMM_WORLD);
            continue;
        }
        MPI_Recv(in, 64, MPI_INT, rank - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p2p(MPI_COMM_WORLD, rank - 1, tag, 12, in);
        MPI_Recv(in, 64, MPI_INT, rank - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p2p(MPI_COMM_WORLD, rank - 1, tag, 20, in);
    }
}

/* Four integers into the room of one. */
static void fail_to_receive(int how, int from)
{
    MPI_Request request;
    MPI_Status status;
    switch (how) {
    case 0:
        must_fail(MPI_Recv(in, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Recv");
        break;
    case 1:
        MPI_Irecv(in, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request);
        must_fail(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        break;
    case 2:
        MPI_Irecv(in, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request);
        must_fail(MPI_Waitall(1, &request, &status), "MPI_Waitall");
        break;
    default: /* what it sends goes, its receive fails */
        must_fail(MPI_Sendrecv(out, 2, MPI_INT, from, tag, in, 1, MPI_INT, from, tag,
                               MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                  "MPI_Sendrecv");
    }
}

static void failed_receives(void)
{
    for (int how = 0; how < 4; how++, tag++) {
        if (rank % 2 == 0) {
            MPI_Send(out, 4, MPI_INT, rank + 1, tag, MPI_COMM_WORLD);
            MPI_Send(out, 6, MPI_INT, rank + 1, tag, MPI_COMM_WORLD);
            if (how < 3)
                continue;
            MPI_Recv(in, 64, MPI_INT, rank + 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            p2p(MPI_COMM_WORLD, rank + 1, tag, 8, in);
            continue;
        }
        fail_to_receive(how, rank - 1);
        MPI_Recv(in, 64, MPI_INT, rank - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        p2p(MPI_COMM_WORLD, rank - 1, tag, 24, in);
    }
}

static void whole_bcast(MPI_Comm comm)
{
    MPI_Bcast(out, 3, MPI_INT, 0, comm);
    if (rank != 0)
        row(comm, 0, -1, 12, out, "bcast", nr_collectives);
    nr_collectives++;
}

/* The errors are the communicator's: those of MPI_COMM_WORLD would end the job. */
static void failed_collectives(void)
{
    MPI_Comm own;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (rank == 0)
        must_fail(MPI_Bcast(out, -1, MPI_INT, 0, own), "MPI_Bcast, count");
    whole_bcast(own);
    must_fail(MPI_Bcast(out, 1, MPI_DATATYPE_NULL, 0, own), "MPI_Bcast, type");
    must_fail(MPI_Ibcast(out, 1, MPI_DATATYPE_NULL, 0, own, &request), "MPI_Ibcast, type");
    must_fail(MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_DATATYPE_NULL, own), "MPI_Allgather, type");
    whole_bcast(own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    failed_sends();
    failed_receives();
    failed_collectives();
    end();
    return 0;
}
