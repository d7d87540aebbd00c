/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_URING_H
#define ZC_TESTS_URING_H

/* The little of io_uring the tests need, by its system calls. */

#include <linux/io_uring.h>
#include <stddef.h>
#include <sys/uio.h>

struct uring {
    int fd;
    unsigned int flags, entries, sqe_size, cqe_size;
    unsigned int *sq_head, *sq_tail, *sq_mask, *sq_flags, *sq_array, queued;
    unsigned int *cq_head, *cq_tail, *cq_mask;
    char *sqes, *cqes;
    void *rings[2];
    size_t ring_len[2], sqes_len;
};

/** Return: 0 or errno. */
int uring_open(struct uring *ring, unsigned int entries, unsigned int flags);
/** As uring_open(); skips the test if there is no io_uring. */
void uring_need(struct uring *ring, unsigned int entries, unsigned int flags);
void uring_close(struct uring *ring);

/** The next entry, cleared; queued until uring_submit(). */
struct io_uring_sqe *uring_sqe(struct uring *ring);

/** Fills in IORING_OP_URING_CMD with the 16 bytes at @payload. */
void uring_command(struct io_uring_sqe *sqe, int fd, unsigned int command, const void *payload);

/** Submits all that is queued. Return: 0 or errno. */
int uring_submit(struct uring *ring);

/** Submits and waits for one completion. Return: its res. */
int uring_wait(struct uring *ring);

/** Waits for one completion. Return: 0 or errno. */
int uring_next(struct uring *ring, struct io_uring_cqe *cqe);

/** Pins the memory (FOLL_PIN) until uring_unpin() or uring_close(). Return: 0 or errno. */
int uring_pin(struct uring *ring, const struct iovec *buffers, unsigned int count);
int uring_unpin(struct uring *ring);

#endif
