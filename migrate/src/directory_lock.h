/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <string>

#include "lineage.h"

namespace zc::migrate {

/**
 * One job saves in a directory at a time: flock(2) of DIR/lock, which network file systems pass
 * on to other hosts, and which ends with this process whatever ends it. The file says who has it.
 */
class directory_lock {
  public:
    /** Makes the directory. Throws error(EBUSY), naming who has it, or what else is wrong. */
    directory_lock(const std::string &directory, const lineage &who);
    ~directory_lock();
    directory_lock(const directory_lock &) = delete;
    directory_lock &operator=(const directory_lock &) = delete;

    /** False where the file system has no locks: nobody is kept away. */
    bool is_held() const noexcept { return problem_.empty(); }
    /** Why not. */
    const std::string &problem() const noexcept { return problem_; }

  private:
    int fd_;
    std::string problem_;
};

} // namespace zc::migrate
