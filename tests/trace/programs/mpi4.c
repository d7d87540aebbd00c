/* SPDX-License-Identifier: BSD-3-Clause */
/* What MPI-4 adds: ways to make a communicator. With an earlier MPI a program that does nothing. */
#include "expect.h"

#if MPI_VERSION >= 4

static int in[32], out[16];

/* Two communicators of the same members, which some ranks use first in one order, some in the
 * other: which is which the trace knows by the order in which they were made. */
static void use_crossed(MPI_Comm a, MPI_Comm b, int to, int from, int sends_first)
{
    MPI_Request sends[2], receives[2];
    for (int turn = 0; turn < 2; turn++) {
        if (turn != sends_first) {
            MPI_Isend(out, 3, MPI_INT, to, 7, a, &sends[0]);
            MPI_Isend(out, 5, MPI_INT, to, 7, b, &sends[1]);
        } else {
            MPI_Irecv(in, 16, MPI_INT, from, 7, b, &receives[0]);
            MPI_Irecv(in + 8, 16, MPI_INT, from, 7, a, &receives[1]);
        }
    }
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, receives, MPI_STATUSES_IGNORE);
}

static void use_ring(MPI_Comm a, MPI_Comm b)
{
    const int last = (rank + size - 1) % size;
    use_crossed(a, b, (rank + 1) % size, last, rank % 2);
    p2p(b, last, 7, 20, in);
    p2p(a, last, 7, 12, in + 8);
    MPI_Comm_free(&b);
    MPI_Comm_free(&a);
}

static void duplicates(void)
{
    MPI_Comm a, b;
    MPI_Request made[2];
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &a, &made[0]);
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &b, &made[1]);
    MPI_Waitall(2, made, MPI_STATUSES_IGNORE);
    use_ring(a, b);
}

static void of_groups(MPI_Session session)
{
    MPI_Comm a, b;
    MPI_Group all;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Comm_create_from_group(all, "first", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &a);
    MPI_Comm_create_from_group(all, "second", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &b);
    use_ring(a, b);
    MPI_Group_free(&all);
}

/* Halves of the world. */
static void between_groups(MPI_Session session)
{
    MPI_Comm a, b;
    MPI_Group all, mine, theirs;
    const int low = rank < size / 2;
    int first[1][3] = {{0, size / 2 - 1, 1}}, second[1][3] = {{size / 2, size - 1, 1}};
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_range_incl(all, 1, low ? first : second, &mine);
    MPI_Group_range_incl(all, 1, low ? second : first, &theirs);
    MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "one", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                     &a);
    MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "two", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                     &b);
    const int partner = low ? rank : rank - size / 2;
    const int of_world = low ? rank + size / 2 : rank - size / 2;
    use_crossed(a, b, partner, partner, low);
    p2p(b, of_world, 7, 20, in);
    p2p(a, of_world, 7, 12, in + 8);
    MPI_Comm_free(&b);
    MPI_Comm_free(&a);
    MPI_Group_free(&theirs);
    MPI_Group_free(&mine);
    MPI_Group_free(&all);
}

static void make_and_use(void)
{
    MPI_Session session;
    duplicates();
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    of_groups(session);
    between_groups(session);
    MPI_Session_finalize(&session);
}

#else

static void make_and_use(void) {}

#endif

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    make_and_use();
    end();
    return 0;
}
