/* SPDX-License-Identifier: BSD-3-Clause */
/* liburing maps and unmaps its rings by system calls of its own, which ThreadSanitizer
 * does not see: a new ring at the address of an old one looks like a race with it. */
#ifdef __SANITIZE_THREAD__
extern "C" __attribute__((visibility("default"))) const char *__tsan_default_suppressions()
{
    return "race:io_uring_prep_\n"
           "race:io_uring_submit\n"
           "race:IO_URING_READ_ONCE\n"
           "race:io_uring_smp_\n"
           "race:io_uring_sqe_set_data\n"
           "race:io_uring_get_sqe\n"
           "race:io_uring_peek_cqe\n";
}
#endif
