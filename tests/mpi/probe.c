/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probing sees a large message with its right size whether or not it has
 * landed; a matched probe takes exactly one message out of the order.
 */
#include "check.h"

enum { GO = 1, DATA = 2, OTHER = 3 };

static const size_t sizes[] = {0, 8, 300, 4096, 65536, 1 << 20, 4 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

enum way { PROBE, IPROBE, MPROBE, IMPROBE, WAYS };

static void check_status(const MPI_Status *status, size_t bytes)
{
    int count;
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK((size_t)count == bytes, "probe says %d bytes, sent were %zu", count, bytes);
    CHECK(status->MPI_SOURCE == 1 && status->MPI_TAG == DATA, "source %d tag %d",
          status->MPI_SOURCE, status->MPI_TAG);
}

static void receive(enum way way, int source, int tag, size_t bytes, uint64_t seed)
{
    struct guarded g = guarded_make(bytes, 16);
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request request;
    int found = 0;

    /* Nothing with this tag was ever sent. */
    MPI_Iprobe(1, OTHER, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    CHECK(!found, "probe found a message that was not sent");

    switch (way) {
    case PROBE:
        MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
        break;
    case IPROBE:
        while (!found)
            MPI_Iprobe(source, tag, MPI_COMM_WORLD, &found, &status);
        break;
    case MPROBE:
        MPI_Mprobe(source, tag, MPI_COMM_WORLD, &message, &status);
        break;
    default:
        while (!found)
            MPI_Improbe(source, tag, MPI_COMM_WORLD, &found, &message, &status);
    }
    check_status(&status, bytes);

    if (way == PROBE || way == IPROBE) {
        MPI_Iprobe(source, tag, MPI_COMM_WORLD, &found, &status);
        CHECK(found, "a probed message vanished");
        check_status(&status, bytes);
        MPI_Recv(g.at, (int)bytes, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status);
    } else if (way == MPROBE) {
        MPI_Mrecv(g.at, (int)bytes, MPI_BYTE, &message, &status);
    } else {
        MPI_Imrecv(g.at, (int)bytes, MPI_BYTE, &message, &request);
        MPI_Wait(&request, &status);
    }
    check_status(&status, bytes);
    check_content(g.at, bytes, seed, "probed message");
    guarded_check(&g, "probed message");
    guarded_free(&g);
}

/* Two messages with one envelope: the first matched by probe is received second. */
static void receive_swapped(size_t bytes, uint64_t seed)
{
    MPI_Message message;
    MPI_Status status;
    int found;
    char *first = check_malloc(bytes), *second = check_malloc(bytes);
    MPI_Mprobe(1, DATA, MPI_COMM_WORLD, &message, &status);
    MPI_Recv(second, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iprobe(1, DATA, MPI_COMM_WORLD, &found, &status);
    CHECK(!found, "a message taken by a matched probe is still visible");
    MPI_Mrecv(first, (int)bytes, MPI_BYTE, &message, &status);
    check_content(first, bytes, seed, "matched message");
    check_content(second, bytes, seed + 1, "message after the matched one");
    free(first);
    free(second);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (int s = 0; s < SIZES; s++) {
        for (int late = 0; late < 2; late++) {
            for (int way = 0; way <= WAYS; way++) {
                const size_t bytes = sizes[s];
                const uint64_t seed = check_seed + (uint64_t)(s * 100 + late * 50 + way * 2);
                if (check_rank == 0) {
                    MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
                    if (late)
                        check_sleep_ms(15);
                    if (way == WAYS)
                        receive_swapped(bytes, seed);
                    else
                        receive(way, late ? 1 : MPI_ANY_SOURCE, way % 2 ? DATA : MPI_ANY_TAG, bytes,
                                seed);
                } else if (check_rank == 1) {
                    MPI_Request request[2];
                    int nr = way == WAYS ? 2 : 1;
                    char *buf = check_malloc(2 * bytes);
                    MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    for (int i = 0; i < nr; i++) {
                        pattern_fill(buf + (size_t)i * bytes, bytes, seed + (uint64_t)i);
                        MPI_Isend(buf + (size_t)i * bytes, (int)bytes, MPI_BYTE, 0, DATA,
                                  MPI_COMM_WORLD, &request[i]);
                    }
                    MPI_Waitall(nr, request, MPI_STATUSES_IGNORE);
                    free(buf);
                }
            }
        }
    }
    return check_finish();
}
