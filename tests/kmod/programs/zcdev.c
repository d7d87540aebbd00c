/* SPDX-License-Identifier: BSD-3-Clause */
#include "zcdev.h"

#include "ktap.h"
#include "pagemap.h"
#include "uring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static enum zcdev_way way;
static struct uring ring;
static bool ring_open;

/* zc_ioctl.h says it in comments only. */
static const struct {
    const char *name;
    int error;
} causes[ZC_CAUSE_COUNT] = {
    [ZC_CAUSE_NONE] = {"NONE", 0},
    [ZC_CAUSE_ALIGNMENT] = {"ALIGNMENT", EINVAL},
    [ZC_CAUSE_OVERLAP] = {"OVERLAP", EADDRINUSE},
    [ZC_CAUSE_UNMAPPED] = {"UNMAPPED", EFAULT},
    [ZC_CAUSE_ACCESS] = {"ACCESS", EACCES},
    [ZC_CAUSE_FILE] = {"FILE", ENODEV},
    [ZC_CAUSE_SHARED] = {"SHARED", ENOTUNIQ},
    [ZC_CAUSE_HUGETLB] = {"HUGETLB", EMEDIUMTYPE},
    [ZC_CAUSE_SPECIAL] = {"SPECIAL", EOPNOTSUPP},
    [ZC_CAUSE_LOCKED] = {"LOCKED", EPERM},
    [ZC_CAUSE_USERFAULTFD] = {"USERFAULTFD", EREMOTE},
    [ZC_CAUSE_POLICY] = {"POLICY", EXDEV},
    [ZC_CAUSE_COW] = {"COW", EMLINK},
    [ZC_CAUSE_PINNED] = {"PINNED", EBUSY},
    [ZC_CAUSE_PAGE_SIZE] = {"PAGE_SIZE", ERANGE},
    [ZC_CAUSE_NOTIFIER] = {"NOTIFIER", EUSERS},
    [ZC_CAUSE_RACED] = {"RACED", EAGAIN},
    [ZC_CAUSE_NO_MEMORY] = {"NO_MEMORY", ENOMEM},
    [ZC_CAUSE_INTERRUPTED] = {"INTERRUPTED", EINTR},
    [ZC_CAUSE_POISONED] = {"POISONED", EHWPOISON},
};

const char *zcdev_cause(uint32_t cause)
{
    return cause < ZC_CAUSE_COUNT && causes[cause].name ? causes[cause].name : "?";
}

int zcdev_errno(uint32_t cause)
{
    return cause < ZC_CAUSE_COUNT ? causes[cause].error : -1;
}

int zcdev_open(void)
{
    static int fd = -1;

    if (fd < 0)
        fd = open("/dev/zc", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        ktap_skip("/dev/zc: %s", strerror(errno));
    return fd;
}

const char *zcdev_way_name(enum zcdev_way which)
{
    static const char *const names[] = {"ioctl", "io_uring", "io_uring with IOSQE_ASYNC",
                                        "io_uring with SQPOLL"};

    return names[which];
}

void zcdev_go(enum zcdev_way to)
{
    if (ring_open)
        uring_close(&ring);
    ring_open = false;
    way = to;
    if (to == ZCDEV_IOCTL)
        return;
    int error = uring_open(&ring, 8, to == ZCDEV_URING_SQPOLL ? IORING_SETUP_SQPOLL : 0);
    if (error)
        ktap_skip("no io_uring (%s) here: %s", zcdev_way_name(to), strerror(error));
    ring_open = true;
}

int zcdev_call_by(struct uring *by, unsigned int flags, struct zc_exchange *exchange)
{
    struct zc_uring_cmd command = {.exchange = (uintptr_t)exchange};
    int fd = zcdev_open();
    struct io_uring_sqe *sqe;

    if (!by)
        return ioctl(fd, ZC_IOC_EXCHANGE, exchange) ? errno : 0;
    sqe = uring_sqe(by);
    uring_command(sqe, fd, ZC_URING_EXCHANGE, &command);
    sqe->flags |= flags;
    return -uring_wait(by);
}

struct zcdev_outcome zcdev_vector_by(struct uring *by, unsigned int flags, struct zc_range *ranges,
                                     unsigned int count)
{
    struct zc_exchange exchange = {
        .size = sizeof(exchange),
        .range_size = sizeof(*ranges),
        .count = count,
        .ranges = (uintptr_t)ranges,
        .stopped = ~0u,
        .cause = ~0u,
        .done = ~(uint64_t)0,
    };
    struct zc_range *before = malloc((count + 1) * sizeof(*before));
    struct zcdev_outcome outcome;

    memcpy(before, ranges, count * sizeof(*before));
    outcome.error = zcdev_call_by(by, flags, &exchange);
    if (by && outcome.error == ECANCELED) {
        /*
         * What would have to wait goes to a worker, and io_uring had none nor could it make
         * one: copy_process() refuses while a signal is pending (ERESTARTNOINTR), and after
         * the fourth refusal io_should_retry_thread() gives up, so that create_worker_cont()
         * cancels all that is queued (Linux 6.1, io_uring/io-wq.c). io_wq_submit_work() then
         * completes it with ECANCELED instead of calling the module. Torture interrupts its
         * exchangers every 20 ms.
         */
        CHECK(exchange.cause == ~0u && exchange.stopped == ~0u && exchange.done == ~(uint64_t)0 &&
                  !memcmp(before, ranges, count * sizeof(*before)),
              "cancelled, and yet begun");
        free(before);
        return (struct zcdev_outcome){.error = EINTR, .cause = ZC_CAUSE_INTERRUPTED};
    }
    outcome.done = exchange.done;
    outcome.stopped = exchange.stopped;
    outcome.cause = exchange.cause;
    zcdev_check(&outcome, before, ranges, count);
    free(before);
    return outcome;
}

struct zcdev_outcome zcdev_vector(struct zc_range *ranges, unsigned int count)
{
    return zcdev_vector_by(way == ZCDEV_IOCTL ? NULL : &ring,
                           way == ZCDEV_URING_ASYNC ? IOSQE_ASYNC : 0, ranges, count);
}

struct zcdev_outcome zcdev_pair(const void *a, const void *b, size_t len)
{
    struct zc_range range = {.a = (uintptr_t)a, .b = (uintptr_t)b, .length = len};

    return zcdev_vector(&range, 1);
}

void zcdev_check(const struct zcdev_outcome *outcome, const struct zc_range *before,
                 const struct zc_range *after, unsigned int count)
{
    uint64_t sum = 0;

    CHECK(outcome->cause < ZC_CAUSE_COUNT, "cause %u, errno %d", outcome->cause, outcome->error);
    CHECK(outcome->error == zcdev_errno(outcome->cause), "errno %d with cause %s", outcome->error,
          zcdev_cause(outcome->cause));
    CHECK(outcome->stopped <= count, "stopped %u of %u", outcome->stopped, count);
    CHECK((outcome->stopped == count) == (outcome->cause == ZC_CAUSE_NONE),
          "stopped %u of %u with cause %s", outcome->stopped, count, zcdev_cause(outcome->cause));
    for (unsigned int i = 0; i < count; i++) {
        const struct zc_range *now = &after[i], *was = &before[i];

        CHECK(now->a == was->a && now->b == was->b && now->length == was->length &&
                  now->flags == was->flags,
              "inputs of range %u were changed", i);
        if (i > outcome->stopped) {
            CHECK(now->cause == was->cause && now->done == was->done,
                  "outputs of range %u, after the one that stopped (%u), were changed", i,
                  outcome->stopped);
            continue;
        }
        /* A signal between two ranges stops the next one before it is tried. */
        if (i == outcome->stopped && outcome->cause == ZC_CAUSE_INTERRUPTED &&
            now->cause == was->cause && now->done == was->done)
            continue;
        CHECK(now->done % PAGE_SIZE == 0 && now->done <= now->length, "range %u: done %llu of %llu",
              i, (unsigned long long)now->done, (unsigned long long)now->length);
        CHECK(i < outcome->stopped ? now->cause == ZC_CAUSE_NONE && now->done == now->length
                                   : now->cause == outcome->cause,
              "range %u: done %llu, cause %s; stopped %u", i, (unsigned long long)now->done,
              zcdev_cause(now->cause), outcome->stopped);
        sum += now->done;
    }
    CHECK(sum == outcome->done, "done %llu, its ranges' %llu", (unsigned long long)outcome->done,
          (unsigned long long)sum);
}
