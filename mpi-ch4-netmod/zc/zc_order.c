/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "zc_order.h"

static struct {
    int fd;
    int passed;                 /* what has come with an order, and was not taken; -1: nothing */
    size_t length;              /* of what has come and was not taken */
    char text[64];
} holder = {.fd = -1,.passed = -1 };

/* Room for one descriptor that is passed. */
typedef union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
} control_t;

int MPIDI_ZC_order_passed(void)
{
    const int fd = holder.passed;

    holder.passed = -1;
    return fd;
}

static void keep_passed(int fd)
{
    const int before = MPIDI_ZC_order_passed();

    if (before >= 0) {
        close(before);
    }
    holder.passed = fd;
}

/* zc-hold sets it: its own process number comes first. */
#define MARK "ZC_HOLD_RANK"

bool MPIDI_ZC_order_is_for_this(void)
{
    const char *mark = getenv(MARK);
    return !mark || strtol(mark, NULL, 10) == getppid();
}

bool MPIDI_ZC_order_open(int fd)
{
    int type;
    socklen_t length = sizeof(type);

    if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0) {
        return false;
    }
    keep_passed(-1);
    holder.length = 0;
    __atomic_store_n(&holder.fd, fd, __ATOMIC_RELEASE);
    return true;
}

int MPIDI_ZC_order_descriptor(void)
{
    return __atomic_load_n(&holder.fd, __ATOMIC_ACQUIRE);
}

static MPIDI_ZC_order_t parse(const char *line, MPIDI_ZC_given_t * given)
{
    unsigned number;
    char rest;

    if (!strcmp(line, "LEAVE")) {
        return MPIDI_ZC_ORDER_LEAVE;
    }
    if (!strcmp(line, "TRACK")) {
        return MPIDI_ZC_ORDER_TRACK;
    }
    if (sscanf(line, "BIND %u%c", &number, &rest) == 1) {
        given->number = number;
        return MPIDI_ZC_ORDER_BIND;
    }
    if (sscanf(line, "WITH %u%c", &number, &rest) == 1) {
        given->number = number;
        return MPIDI_ZC_ORDER_WITH;
    }
    if (sscanf(line, "TELL %" SCNd64 "%c", &given->number, &rest) == 1) {
        return MPIDI_ZC_ORDER_TELL;
    }
    if (sscanf(line, "LIVES %" SCNu16 " %" SCNx64 " %" SCNu16 "%c", &given->port, &given->token,
               &given->seconds, &rest) == 3) {
        return MPIDI_ZC_ORDER_LIVES;
    }
    return MPIDI_ZC_ORDER_UNKNOWN;
}

/* Takes the first whole line of what has come. False: there is none. */
static bool take_line(MPIDI_ZC_order_t * order, MPIDI_ZC_given_t * given)
{
    char *end = memchr(holder.text, '\n', holder.length);

    if (!end) {
        return false;
    }
    *end = '\0';
    *order = parse(holder.text, given);
    holder.length -= end + 1 - holder.text;
    memmove(holder.text, end + 1, holder.length);
    return true;
}

/* Receives as recv(2), and keeps a descriptor that comes with it. */
static ssize_t receive_passed(void *bytes, size_t room)
{
    struct iovec content = {.iov_base = bytes,.iov_len = room };
    control_t control = { 0 };
    /* There is no room for a second one, which would leak. */
    struct msghdr message = {
        .msg_iov = &content,.msg_iovlen = 1,
        .msg_control = &control,.msg_controllen = CMSG_LEN(sizeof(int))
    };
    const ssize_t got = recvmsg(holder.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *first = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    int fd;

    if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(first), sizeof(fd));
        keep_passed(fd);
    }
    return got;
}

/* Receives what has come. False: nothing has, and the holder is still there. */
static bool receive(void)
{
    const size_t room = sizeof(holder.text) - holder.length;
    const ssize_t bytes = room == 0 ? 0 : receive_passed(holder.text + holder.length, room);

    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (bytes <= 0) {
        (void) MPIDI_ZC_order_open(-1);
    } else {
        holder.length += bytes;
    }
    return true;
}

bool MPIDI_ZC_order_waits(void)
{
    struct pollfd fd = {.fd = holder.fd,.events = POLLIN };

    return fd.fd >= 0 && (memchr(holder.text, '\n', holder.length) || poll(&fd, 1, 0) > 0);
}

MPIDI_ZC_order_t MPIDI_ZC_order_take(bool wait, MPIDI_ZC_given_t * given)
{
    MPIDI_ZC_order_t order;

    for (;;) {
        if (take_line(&order, given)) {
            return order;
        }
        if (holder.fd < 0) {
            return MPIDI_ZC_ORDER_CLOSED;
        }
        if (wait) {
            struct pollfd fd = {.fd = holder.fd,.events = POLLIN };
            (void) poll(&fd, 1, -1);
        }
        if (!receive() && !wait) {
            return MPIDI_ZC_ORDER_NONE;
        }
    }
}

void MPIDI_ZC_order_answer(const char *answer, const char *more)
{
    char line[256];
    const int length = snprintf(line, sizeof(line), "%s%s%s\n", answer, more ? " " : "",
                                more ? more : "");

    if (holder.fd >= 0 && length < (int) sizeof(line)) {
        /* A holder that has gone is noticed when its next order is awaited. */
        (void) send(holder.fd, line, length, MSG_NOSIGNAL);
    }
}

void MPIDI_ZC_order_pass(const char *answer, int fd)
{
    char line[64];
    const int length = snprintf(line, sizeof(line), "%s\n", answer);
    struct iovec content = {.iov_base = line,.iov_len = length };
    control_t control = { 0 };
    const struct msghdr message = {
        .msg_iov = &content,.msg_iovlen = 1,
        .msg_control = &control,.msg_controllen = sizeof(control)
    };

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    if (holder.fd >= 0 && length < (int) sizeof(line)) {
        (void) sendmsg(holder.fd, &message, MSG_NOSIGNAL);      /* as above */
    }
}
