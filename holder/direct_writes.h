/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_DIRECT_WRITES_H_INCLUDED
#define ZC_HOLDER_DIRECT_WRITES_H_INCLUDED

#include <string>

#include <sys/types.h>

namespace zc::holder {

/**
 * What the process @pid, whose threads are in no system call, has that may write its memory all the
 * same, by pages that were looked up before: a device, a ring of io_uring(7) or requests of
 * io_submit(2), of which a read with O_DIRECT may be under way. Empty: nothing.
 */
std::string direct_writer(pid_t pid);

} // namespace zc::holder

#endif
