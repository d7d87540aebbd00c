/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX refuses to take a message, or to fetch one: that message's call or request says so, the
 * other side is not held, and what follows arrives, in order.
 *
 * This program stands before two of UCX's functions, which the library calls here, not there.
 */
#include "check.h"
#include <dlfcn.h>

enum { GO = 1, DATA = 2 };
enum when { POSTED_FIRST, LATE, WHENS };

static const size_t large = 1 << 20;
static int refuse_sends, refuse_fetches; /* so many of the next */

/* What UCX returns for UCS_ERR_NO_MEMORY. */
static void *refusal(void)
{
    return (void *)(intptr_t)-4;
}

void *ucp_am_send_nbx(void *ep, unsigned id, const void *header, size_t header_length,
                      const void *buffer, size_t count, const void *param)
{
    void *(*next)(void *, unsigned, const void *, size_t, const void *, size_t, const void *);
    *(void **)&next = dlsym(RTLD_NEXT, "ucp_am_send_nbx");
    if (refuse_sends > 0) {
        refuse_sends--;
        return refusal();
    }
    return next(ep, id, header, header_length, buffer, count, param);
}

void *ucp_am_recv_data_nbx(void *worker, void *descriptor, void *buffer, size_t count,
                           const void *param)
{
    void *(*next)(void *, void *, void *, size_t, const void *);
    *(void **)&next = dlsym(RTLD_NEXT, "ucp_am_recv_data_nbx");
    if (refuse_fetches > 0) {
        refuse_fetches--;
        return refusal();
    }
    return next(worker, descriptor, buffer, count, param);
}

static void expect_next(size_t bytes, uint64_t seed, const char *what)
{
    char *in = check_malloc(bytes);
    CHECK(MPI_Recv(in, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
              MPI_SUCCESS,
          "%s", what);
    check_content(in, bytes, seed, what);
    free(in);
}

static void send_next(size_t bytes, uint64_t seed)
{
    char *out = check_malloc(bytes);
    pattern_fill(out, bytes, seed);
    MPI_Send(out, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
    free(out);
}

/* The first message is not sent, of which its sender is told; the next ones are. */
static void refused_send(MPI_Datatype type, int count)
{
    if (check_rank == 1) {
        MPI_Request request;
        char *out = check_malloc(2 * large);
        memset(out, 0, 2 * large);
        refuse_sends = 1;
        const int error = MPI_Issend(out, count, type, 0, DATA, MPI_COMM_WORLD, &request);
        CHECK(refuse_sends == 0, "no send has been refused");
        CHECK(error != MPI_SUCCESS, "no error is returned for a send that is refused");
        send_next(100, check_seed);
        send_next(large, check_seed + 1);
        free(out);
    } else if (check_rank == 0) {
        expect_next(100, check_seed, "short message after one not sent");
        expect_next(large, check_seed + 1, "large message after one not sent");
    }
}

/* The receive, not the program, is told; its sender is let go. */
static void refused_fetch(enum when when)
{
    if (check_rank == 1) {
        if (when == POSTED_FIRST)
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        send_next(large, check_seed);
        send_next(100, check_seed + 1);
        send_next(large, check_seed + 2);
    } else if (check_rank == 0) {
        char *in = check_malloc(large);
        MPI_Request request;
        MPI_Status status;
        refuse_fetches = 1;
        if (when == LATE)
            MPI_Probe(1, DATA, MPI_COMM_WORLD, &status);
        MPI_Irecv(in, (int)large, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, &request);
        if (when == POSTED_FIRST)
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
        const int error = MPI_Wait(&request, &status);
        CHECK(refuse_fetches == 0, "no fetch has been refused");
        CHECK(error != MPI_SUCCESS, "no error is returned for a message that is not fetched");
        expect_next(100, check_seed + 1, "short message after one not fetched");
        expect_next(large, check_seed + 2, "large message after one not fetched");
        free(in);
    }
}

int main(int argc, char **argv)
{
    MPI_Datatype pairs;
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_vector((int)large / 8, 1, 2, MPI_FLOAT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Barrier(MPI_COMM_WORLD);
    refused_send(MPI_BYTE, 8);
    refused_send(MPI_BYTE, (int)large);
    refused_send(pairs, 1);
    for (enum when when = 0; when < WHENS; when++) {
        MPI_Barrier(MPI_COMM_WORLD);
        refused_fetch(when);
    }
    MPI_Type_free(&pairs);
    return check_finish();
}
