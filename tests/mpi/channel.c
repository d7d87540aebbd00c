/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel CASE: large messages between two hosts, both ways, while something goes wrong with the
 * connection that is to carry them. All arrive, in order.
 *
 *   open           nothing does: they go by the channel
 *   none-listens   rank 0 cannot listen
 *   none-connects  rank 1 cannot connect
 *   nowhere        nothing listens at the port that rank 1 was told
 *   unlike         rank 1 does not know the secret
 *   silent         the connection is accepted, and never answered
 *   slow           rank 1 connects late: messages go by UCX, and then by the channel
 *   strangers      connections to rank 0 come that are no channels
 *   no-memory      every third frame cannot be queued
 *   length         a frame is not as long as its message: its receive says so
 *
 * This program stands before functions of libzclane, which the netmod calls here, not there.
 */
#include "counter.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <zcl/lane.h>

enum { DATA = 1, GO = 2, ROUNDS = 40, WINDOW = 8, STRANGERS = 100 };

static const char *what;
static int frames, strangers[STRANGERS];
static int cut_next;
static in_port_t other_port;
static const size_t sizes[] = {100, 70000, 1 << 20, 4 << 20};

static int is(const char *name)
{
    return !strcmp(what, name);
}

int zcl_create(const zcl_params_t *params, zcl_t **out)
{
    int (*next)(const zcl_params_t *, zcl_t **);
    *(void **)&next = dlsym(RTLD_NEXT, "zcl_create");
    return is("none-listens") && check_rank == 0 ? -EADDRINUSE : next(params, out);
}

/* On rank 0: a port that is taken, where nothing listens or nothing answers. */
static in_port_t take_port(int listens)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
    socklen_t length = sizeof own;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&own, length) == 0 &&
              (!listens || listen(fd, 1) == 0) &&
              getsockname(fd, (struct sockaddr *)&own, &length) == 0,
          "no socket: %s", strerror(errno));
    return own.sin_port;
}

static void send_strangers(const struct sockaddr_in *address)
{
    static const char words[] = "GET / HTTP/1.1\r\nHost: other\r\n\r\n and so on, and so on";
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(strangers[i] >= 0 &&
                  connect(strangers[i], (const struct sockaddr *)address, sizeof *address) == 0,
              "a stranger cannot connect: %s", strerror(errno));
        if (i % 2)
            (void)send(strangers[i], words, sizeof words, MSG_NOSIGNAL);
    }
}

int zcl_connect(zcl_t *context, const struct sockaddr *address, socklen_t length,
                const unsigned char *secret, zcl_lane_t **lane)
{
    int (*next)(zcl_t *, const struct sockaddr *, socklen_t, const unsigned char *, zcl_lane_t **);
    struct sockaddr_in to;
    const unsigned char wrong[ZCL_SECRET_BYTES] = {1};
    *(void **)&next = dlsym(RTLD_NEXT, "zcl_connect");
    CHECK(check_rank == 1 && length == sizeof to, "rank %d connects", check_rank);
    memcpy(&to, address, sizeof to);
    if (is("none-connects"))
        return -EMFILE;
    if (is("nowhere") || is("silent"))
        to.sin_port = other_port;
    if (is("strangers"))
        send_strangers(&to);
    if (is("slow"))
        check_sleep_ms(200);
    return next(context, (struct sockaddr *)&to, length, is("unlike") ? wrong : secret, lane);
}

int zcl_send(zcl_lane_t *lane, const zcl_frame_t *frame, const void *data, void *token)
{
    int (*next)(zcl_lane_t *, const zcl_frame_t *, const void *, void *);
    zcl_frame_t cut = *frame;
    *(void **)&next = dlsym(RTLD_NEXT, "zcl_send");
    if (is("no-memory") && frame->len > 0 && frames++ % 3 == 0)
        return -ENOMEM;
    if (cut_next && frame->len > 0) {
        cut_next = 0;
        cut.len--;
    }
    return next(lane, &cut, data, token);
}

/* Large and small ones in turn, each rank ahead of the other once. */
static void exchange(int round)
{
    const int other = 1 - check_rank;
    MPI_Request requests[2 * WINDOW];
    char *in[WINDOW], *out[WINDOW];
    const uint64_t seed = check_seed + (uint64_t)round * WINDOW;
    for (int i = 0; i < WINDOW; i++) {
        const size_t bytes = sizes[(round + i) % 4];
        in[i] = check_malloc(bytes);
        out[i] = check_malloc(bytes);
        memset(in[i], 0, bytes);
        pattern_fill(out[i], bytes, seed + (uint64_t)i);
        MPI_Isend(out[i], (int)bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD, &requests[i]);
    }
    if (round % 3 == check_rank)
        check_sleep_ms(5);
    for (int i = 0; i < WINDOW; i++)
        MPI_Irecv(in[i], (int)sizes[(round + i) % 4], MPI_BYTE, other, DATA, MPI_COMM_WORLD,
                  &requests[WINDOW + i]);
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; i++) {
        check_content(in[i], sizes[(round + i) % 4], seed + (uint64_t)i, "message both ways");
        free(in[i]);
        free(out[i]);
    }
}

/* As deep a pipeline as can be: what one way carries must not pass what the other has. */
static void stream(int from)
{
    enum { MESSAGES = 60 };
    const size_t bytes = 300000;
    MPI_Request requests[MESSAGES];
    char *all = check_malloc(MESSAGES * bytes);
    if (check_rank == from) {
        for (int i = 0; i < MESSAGES; i++) {
            pattern_fill(all + i * bytes, bytes, check_seed + (uint64_t)i);
            MPI_Isend(all + i * bytes, (int)bytes, MPI_BYTE, 1 - from, DATA, MPI_COMM_WORLD,
                      &requests[i]);
        }
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    } else {
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Recv(all, (int)bytes, MPI_BYTE, from, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_content(all, bytes, check_seed + (uint64_t)i, "message of a stream");
        }
    }
    free(all);
}

static void cut_one(void)
{
    const size_t bytes = 1 << 20;
    char *buf = check_malloc(bytes);
    memset(buf, 0, bytes);
    if (check_rank == 1) {
        cut_next = 1;
        MPI_Send(buf, (int)bytes, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        CHECK(!cut_next, "no frame was %s", "sent");
    } else {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        CHECK(MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE) !=
                  MPI_SUCCESS,
              "no error is returned for a message that is not %s", "whole");
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
    free(buf);
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "open";
    check_init(&argc, &argv, MPI_THREAD_SINGLE);
    struct counter channels = counter_open("channels"), refusals = counter_open("channel_refusals"),
                   offered = counter_open("offered");
    const int without =
        is("none-listens") || is("none-connects") || is("nowhere") || is("unlike") || is("silent");

    if (check_rank == 0)
        other_port = take_port(is("silent"));
    MPI_Bcast(&other_port, 1, MPI_UINT16_T, 0, MPI_COMM_WORLD);
    stream(0);
    stream(1);
    for (int round = 0; round < ROUNDS; round++)
        exchange(round);
    if (is("length"))
        cut_one();
    if (without) {
        CHECK(counter_read(&channels) == 0, "there is a %s", "channel");
        CHECK(counter_read(&offered) == 0, "something went by a %s", "channel");
        CHECK(is("silent") || counter_read(&refusals) > 0, "no refusal was %s", "counted");
    } else {
        CHECK(counter_read(&channels) == 1, "%llu channels", counter_read(&channels));
        CHECK(counter_read(&refusals) == 0, "%llu refusals", counter_read(&refusals));
        CHECK(counter_read(&offered) > 100, "only %llu went by the channel",
              counter_read(&offered));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < STRANGERS; i++)
        if (strangers[i] > 0)
            close(strangers[i]);
    counter_close(&offered);
    counter_close(&refusals);
    counter_close(&channels);
    return check_finish();
}
