/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "uring.h"

#include "ktap.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *map_ring(int fd, size_t len, off_t offset)
{
    return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
}

int uring_open(struct uring *ring, unsigned int entries, unsigned int flags)
{
    struct io_uring_params p = {.flags = flags, .sq_thread_idle = 1};

    memset(ring, 0, sizeof(*ring));
    ring->fd = syscall(SYS_io_uring_setup, entries, &p);
    if (ring->fd < 0)
        return errno;
    ring->flags = flags;
    ring->entries = p.sq_entries;
    ring->sqe_size = flags & IORING_SETUP_SQE128 ? 128 : 64;
    ring->cqe_size = flags & IORING_SETUP_CQE32 ? 32 : 16;
    ring->ring_len[0] = p.sq_off.array + p.sq_entries * sizeof(unsigned int);
    ring->ring_len[1] = p.cq_off.cqes + p.cq_entries * ring->cqe_size;
    ring->sqes_len = p.sq_entries * ring->sqe_size;
    ring->rings[0] = map_ring(ring->fd, ring->ring_len[0], IORING_OFF_SQ_RING);
    ring->rings[1] = map_ring(ring->fd, ring->ring_len[1], IORING_OFF_CQ_RING);
    ring->sqes = map_ring(ring->fd, ring->sqes_len, IORING_OFF_SQES);
    if (ring->rings[0] == MAP_FAILED || ring->rings[1] == MAP_FAILED || ring->sqes == MAP_FAILED)
        return ENOMEM;

    char *sq = ring->rings[0], *cq = ring->rings[1];

    ring->sq_head = (void *)(sq + p.sq_off.head);
    ring->sq_tail = (void *)(sq + p.sq_off.tail);
    ring->sq_mask = (void *)(sq + p.sq_off.ring_mask);
    ring->sq_flags = (void *)(sq + p.sq_off.flags);
    ring->sq_array = (void *)(sq + p.sq_off.array);
    ring->cq_head = (void *)(cq + p.cq_off.head);
    ring->cq_tail = (void *)(cq + p.cq_off.tail);
    ring->cq_mask = (void *)(cq + p.cq_off.ring_mask);
    ring->cqes = cq + p.cq_off.cqes;
    return 0;
}

void uring_need(struct uring *ring, unsigned int entries, unsigned int flags)
{
    int error = uring_open(ring, entries, flags);

    if (error)
        ktap_skip("io_uring: %s", strerror(error));
}

void uring_close(struct uring *ring)
{
    munmap(ring->sqes, ring->sqes_len);
    munmap(ring->rings[0], ring->ring_len[0]);
    munmap(ring->rings[1], ring->ring_len[1]);
    close(ring->fd);
}

struct io_uring_sqe *uring_sqe(struct uring *ring)
{
    unsigned int tail = *ring->sq_tail + ring->queued++;
    unsigned int index = tail & *ring->sq_mask;
    struct io_uring_sqe *sqe = (void *)(ring->sqes + (size_t)index * ring->sqe_size);

    memset(sqe, 0, ring->sqe_size);
    ring->sq_array[index] = index;
    return sqe;
}

void uring_command(struct io_uring_sqe *sqe, int fd, unsigned int command, const void *payload)
{
    sqe->opcode = IORING_OP_URING_CMD;
    sqe->fd = fd;
    sqe->cmd_op = command;
    memcpy(sqe->cmd, payload, 16);
}

static int enter(struct uring *ring, unsigned int submit, unsigned int wait)
{
    unsigned int flags = wait ? IORING_ENTER_GETEVENTS : 0;

    if (ring->flags & IORING_SETUP_SQPOLL) {
        /* The tail must be seen before the thread's wish to be woken is read. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        submit = 0;
        if (__atomic_load_n(ring->sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP)
            flags |= IORING_ENTER_SQ_WAKEUP;
    }
    if (!submit && !flags)
        return 0;
    return syscall(SYS_io_uring_enter, ring->fd, submit, wait, flags, NULL, 0) < 0 ? errno : 0;
}

int uring_submit(struct uring *ring)
{
    unsigned int submit = ring->queued;
    int error;

    __atomic_store_n(ring->sq_tail, *ring->sq_tail + submit, __ATOMIC_RELEASE);
    ring->queued = 0;
    do
        error = enter(ring, submit, 0);
    while (error == EINTR);
    return error;
}

int uring_next(struct uring *ring, struct io_uring_cqe *cqe)
{
    unsigned int head = *ring->cq_head;

    while (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
        int error = enter(ring, 0, 1);

        if (error && error != EINTR)
            return error;
    }
    *cqe = *(struct io_uring_cqe *)(ring->cqes + (size_t)(head & *ring->cq_mask) * ring->cqe_size);
    __atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
    return 0;
}

int uring_wait(struct uring *ring)
{
    struct io_uring_cqe cqe;
    int error = uring_submit(ring);

    if (!error)
        error = uring_next(ring, &cqe);
    if (error)
        FAIL("io_uring_enter: %s", strerror(error));
    return cqe.res;
}

int uring_pin(struct uring *ring, const struct iovec *buffers, unsigned int count)
{
    return syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, buffers, count) ? errno
                                                                                             : 0;
}

int uring_unpin(struct uring *ring)
{
    return syscall(SYS_io_uring_register, ring->fd, IORING_UNREGISTER_BUFFERS, NULL, 0) ? errno : 0;
}
