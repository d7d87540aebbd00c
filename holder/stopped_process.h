/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_STOPPED_PROCESS_H_INCLUDED
#define ZC_HOLDER_STOPPED_PROCESS_H_INCLUDED

#include <chrono>
#include <functional>

#include <sys/types.h>

namespace zc::holder {

/**
 * Calls @what while all threads of the process @pid stand still, and lets them go on. None of them
 * is in a system call then: one that waits is begun again afterwards, or returns EINTR or less than
 * it was asked for, where signal(7) says so of a stop by ptrace(2), by which this is done. So the
 * caller may trace the process, and no other process does.
 *
 * Throws error, and what @what throws; ETIMEDOUT if a thread does not stop within @patience, as one
 * in a call that nothing interrupts: then @what is not called.
 *
 * What traces is a child of this process, which is killed if it takes too long: ptrace(2) itself
 * waits for a thread that executes another program, and that thread for the others. When the child
 * ends, whatever ends it, the kernel lets all threads go on.
 */
void while_stopped(pid_t pid, const std::function<void()> &what,
                   std::chrono::milliseconds patience = std::chrono::milliseconds(100));

} // namespace zc::holder

#endif
