/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_MEMORY_DIRECTORY_H_INCLUDED
#define ZC_HOLDER_MEMORY_DIRECTORY_H_INCLUDED

#include <string>

#include "descriptor.h"

namespace zc::holder {

/**
 * A new folder of mode 0700 in memory, never on a disk; it is removed with its content.
 *
 * What a process that was killed has left there is removed when the next one is made, by whatever
 * process of this user: the folder of a process that runs is locked (flock(2)), and with the
 * process the lock is gone.
 */
class memory_directory {
  public:
    static constexpr const char *kWhere = "/dev/shm";

    /** Throws error. */
    memory_directory();
    ~memory_directory();
    memory_directory(const memory_directory &) = delete;
    memory_directory &operator=(const memory_directory &) = delete;
    const std::string &path() const noexcept { return path_; }

    /** Those of processes that are gone. Returns how many there were. */
    static int remove_left_over();
    /** Whether there is one of this user. Those of others may have been left over, which cannot be
     * told. */
    static bool is_any_there();

  private:
    std::string path_;
    descriptor lock_;
};

} // namespace zc::holder

#endif
