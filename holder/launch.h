/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_LAUNCH_H_INCLUDED
#define ZC_HOLDER_LAUNCH_H_INCLUDED

#include <csignal>
#include <string>
#include <vector>

#include <sys/types.h>

#include "descriptor.h"

namespace zc::holder {

/**
 * Signals as this process was started with them, and from then on as something to be read: all that
 * can be passed on to a rank are blocked.
 */
class signal_source {
  public:
    signal_source();
    /** As the program is to find them. */
    const sigset_t &mask_before() const noexcept { return before_; }
    /** Readable when there is one. */
    int fd() const noexcept { return fd_.fd; }
    /** 0: no more. */
    int next();

  private:
    sigset_t before_{};
    descriptor fd_;
};

/** What the launcher has given: PMI's socket, -1 if there is none. Throws error if $PMI_FD is no
 * descriptor. */
int process_manager_descriptor();

/** Ends this process as @status, of wait(2), says that the rank has ended. */
[[noreturn]] void end_as(int status);

} // namespace zc::holder

#endif
