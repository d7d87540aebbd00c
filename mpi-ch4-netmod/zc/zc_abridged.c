/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include "zc_abridged.h"
#include "zc_hosts.h"

#define FETCH_MS 5000
#define READ_SECONDS 1          /* of what has begun to arrive */
#define LONGEST_UPID (64 << 10)

/* How many addresses are in the room there is if all are of IPv4. */
#define MOST_HOSTS (MPIDI_ZC_PORT_ROOM / 5)

static struct {
    bool runs;
    int fd;
    pthread_t thread;
    char *answer;               /* WHOLE and the upid */
    size_t answer_length;
    size_t length;              /* of the abridged upid */
    uint64_t abridged[(MPIDI_ZC_PORT_ROOM + 7) / 8];
} server;

/* ---- the process with a port ---- */

/* Sends all of it, or nothing: the kernel has room for it on a new connection. */
static void answer(int fd)
{
    (void) send(fd, server.answer, server.answer_length, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

static void *serve(void *arg)
{
    const struct timespec pause = {.tv_nsec = 10000000 };

    for (;;) {
        const int fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            answer(fd);
        } else if (errno == EINVAL || errno == EBADF) {
            return NULL;        /* MPIDI_ZC_upid_server_stop() */
        } else if (errno != EINTR && errno != ECONNABORTED) {
            nanosleep(&pause, NULL);    /* there are no more descriptors, or no memory, for now */
        }
    }
}

/* Returns a socket that listens, and its port. -1: there is none, and errno says why. */
static int listen_on_any(uint16_t * port)
{
    const int off = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6 };
    struct sockaddr_in four = {.sin_family = AF_INET };
    socklen_t length = sizeof(six);

    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0 ||
                    bind(fd, (struct sockaddr *) &six, sizeof(six)) != 0)) {
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            return -1;
        }
        if (bind(fd, (struct sockaddr *) &four, sizeof(four)) != 0) {
            goto fn_fail;
        }
    }
    if (listen(fd, SOMAXCONN) != 0 || getsockname(fd, (struct sockaddr *) &six, &length) != 0) {
        goto fn_fail;
    }
    *port = six.sin6_port;      /* at the same place in both */
    return fd;

  fn_fail:
    close(fd);
    return -1;
}

/* Returns 0 or errno. */
static int abridge(uint16_t port)
{
    MPIDI_ZC_abridged_t *abridged = (MPIDI_ZC_abridged_t *) server.abridged;
    size_t length;

    *abridged = (MPIDI_ZC_abridged_t) {
        .id = MPIDI_ZC_VCI(0).net->id | MPIDI_ZC_ABRIDGED,
        .host = MPIDI_ZC_VCI(0).net->host,
        .port = port,
    };
    const int err = MPIDI_ZC_hosts_list((char *) (abridged + 1),
                                        MPIDI_ZC_PORT_ROOM - sizeof(*abridged), &length);
    server.length = sizeof(*abridged) + length;
    return err;
}

/* Returns 0 or errno. */
static int start_thread(void)
{
    sigset_t every, old;

    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &old);
    const int err = pthread_create(&server.thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err;
}

static int start_server(void)
{
    int mpi_errno = MPI_SUCCESS, err;
    uint16_t port;
    const MPIDI_ZC_whole_t head = {.magic = MPIDI_ZC_WHOLE,.length = MPIDI_ZC_VCI(0).net_length };

    server.fd = -1;
    server.answer_length = sizeof(head) + head.length;
    server.answer = MPL_malloc(server.answer_length, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!server.answer, mpi_errno, MPI_ERR_OTHER, "**nomem");
    memcpy(server.answer, &head, sizeof(head));
    memcpy(server.answer + sizeof(head), MPIDI_ZC_VCI(0).net, head.length);
    server.fd = listen_on_any(&port);
    err = server.fd < 0 ? errno : abridge(port);
    if (!err) {
        err = start_thread();
    }
    MPIR_ERR_CHKANDJUMP2(err, mpi_errno, MPI_ERR_OTHER, "**zc_port", "**zc_port %d %s",
                         (int) MPIDI_ZC_VCI(0).net_length, strerror(err));
    server.runs = true;

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (server.fd >= 0) {
        close(server.fd);
    }
    MPL_free(server.answer);
    goto fn_exit;
}

int MPIDI_ZC_upid_for_port(const void **upid, size_t * length)
{
    int mpi_errno = MPI_SUCCESS;

    if (MPIDI_ZC_VCI(0).net_length <= MPIDI_ZC_PORT_ROOM) {
        *upid = MPIDI_ZC_VCI(0).net;
        *length = MPIDI_ZC_VCI(0).net_length;
        goto fn_exit;
    }
    if (!server.runs) {
        mpi_errno = start_server();
        MPIR_ERR_CHECK(mpi_errno);
    }
    *upid = server.abridged;
    *length = server.length;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_ZC_upid_server_stop(void)
{
    if (server.runs) {
        shutdown(server.fd, SHUT_RDWR); /* accept4() returns */
        pthread_join(server.thread, NULL);
        close(server.fd);
        MPL_free(server.answer);
        memset(&server, 0, sizeof(server));
    }
}

/* ---- the process that connects ---- */

uint64_t MPIDI_ZC_upid_id(const void *upid)
{
    uint64_t id;

    memcpy(&id, upid, sizeof(id));
    return id & ~MPIDI_ZC_ABRIDGED;
}

static bool read_all(int fd, void *buf, size_t size)
{
    return recv(fd, buf, size, MSG_WAITALL) == (ssize_t) size;
}

/* Reads an answer, which has begun to arrive. False: it is not that of the process with @id, or there
 * is no memory. */
static bool read_answer(int fd, uint64_t id, MPIDI_ZC_upid_t ** upid, size_t * length)
{
    const struct timeval limit = {.tv_sec = READ_SECONDS };
    MPIDI_ZC_whole_t head;

    if (fcntl(fd, F_SETFL, 0) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0 ||
        !read_all(fd, &head, sizeof(head)) || head.magic != MPIDI_ZC_WHOLE ||
        head.length <= sizeof(MPIDI_ZC_upid_t) || head.length > LONGEST_UPID) {
        return false;
    }
    *upid = MPL_malloc(head.length, MPL_MEM_ADDRESS);
    if (*upid && read_all(fd, *upid, head.length) && (*upid)->id == id) {
        *length = head.length;
        return true;
    }
    MPL_free(*upid);
    *upid = NULL;
    return false;
}

static int milliseconds_left(const MPL_time_t * start)
{
    MPL_time_t now;
    double waited;

    MPL_wtime(&now);
    MPL_wtime_diff((MPL_time_t *) start, &now, &waited);
    return MPL_MAX(0, FETCH_MS - (int) (waited * 1000));
}

/* Takes the first right answer of those that are polled. */
static void await_answer(struct pollfd *polled, int nr, uint64_t id, MPIDI_ZC_upid_t ** upid,
                         size_t * length)
{
    MPL_time_t start;
    int open = nr;

    MPL_wtime(&start);
    while (!*upid && open > 0) {
        const int ready = poll(polled, nr, milliseconds_left(&start));
        if (ready == 0 || (ready < 0 && errno != EINTR)) {
            break;
        }
        for (int i = 0; i < nr && ready > 0 && !*upid; i++) {
            if (polled[i].fd >= 0 && polled[i].revents &&
                !read_answer(polled[i].fd, id, upid, length)) {
                close(polled[i].fd);
                polled[i].fd = -1;
                open--;
            }
        }
    }
}

static void fetch(const char *abridged, size_t size, MPIDI_ZC_upid_t ** upid, size_t * length)
{
    MPIDI_ZC_abridged_t head;
    struct pollfd polled[MOST_HOSTS];
    int nr = 0;

    memcpy(&head, abridged, sizeof(head));
    MPIDI_ZC_host_t host = {.list = abridged + sizeof(head),.length = size - sizeof(head) };
    while (nr < MOST_HOSTS && MPIDI_ZC_hosts_next(&host)) {
        const int fd = MPIDI_ZC_hosts_connect(&host, head.port);
        if (fd >= 0) {
            polled[nr++] = (struct pollfd) {.fd = fd,.events = POLLIN };
        }
    }
    await_answer(polled, nr, MPIDI_ZC_upid_id(&head.id), upid, length);
    for (int i = 0; i < nr; i++) {
        if (polled[i].fd >= 0) {
            close(polled[i].fd);
        }
    }
}

int MPIDI_ZC_upid_whole(const void *bytes, size_t size, MPIDI_ZC_upid_t ** upid, size_t * length)
{
    int mpi_errno = MPI_SUCCESS;
    uint64_t id;

    *upid = NULL;
    MPIR_ERR_CHKANDJUMP(size < sizeof(MPIDI_ZC_upid_t), mpi_errno, MPI_ERR_PORT, "**zc_fetch");
    memcpy(&id, bytes, sizeof(id));
    if (id & MPIDI_ZC_ABRIDGED) {
        MPIR_ERR_CHKANDJUMP(size < sizeof(MPIDI_ZC_abridged_t), mpi_errno, MPI_ERR_PORT,
                            "**zc_fetch");
        fetch(bytes, size, upid, length);
        MPIR_ERR_CHKANDJUMP(!*upid, mpi_errno, MPI_ERR_PORT, "**zc_fetch");
    } else {
        *upid = MPL_malloc(size, MPL_MEM_ADDRESS);
        MPIR_ERR_CHKANDJUMP(!*upid, mpi_errno, MPI_ERR_OTHER, "**nomem");
        memcpy(*upid, bytes, size);
        *length = size;
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
