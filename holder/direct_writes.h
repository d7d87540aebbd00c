/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_DIRECT_WRITES_H_INCLUDED
#define ZC_HOLDER_DIRECT_WRITES_H_INCLUDED

#include <string>

#include <sys/types.h>

namespace zc::holder {

/**
 * What the process @pid, whose threads are in no system call, has that may write its memory all the
 * same, by pages that were looked up before: a device, a ring of io_uring(7) or requests of
 * io_submit(2), of which a read with O_DIRECT may be under way, a socket of a kind that has such
 * memory, or a mapping of one of these; another process that has the same memory; a child. Empty:
 * nothing. Throws error, or of std::filesystem.
 *
 * It does not see a ring that has neither a descriptor nor a mapping (IORING_SETUP_NO_MMAP with
 * IORING_SETUP_REGISTERED_FD_ONLY, or io_submit(2) whose ring was unmapped), nor
 * process_vm_writev(2) of a process that is no child.
 */
std::string direct_writer(pid_t pid);

} // namespace zc::holder

#endif
