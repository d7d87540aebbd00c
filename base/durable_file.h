/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_BASE_DURABLE_FILE_H_INCLUDED
#define ZC_BASE_DURABLE_FILE_H_INCLUDED

#include <cstddef>
#include <string>

#include "descriptor.h"

namespace zc {

/**
 * A file that after a crash at any moment is either as before or complete: it is written as
 * PATH.part, by anyone; finish() gives it its name once it is on the disk. Without that nothing
 * is left of it.
 */
class durable_file {
  public:
    /** Throws error if there is no such directory. */
    explicit durable_file(std::string path);
    ~durable_file();
    durable_file(const durable_file &) = delete;
    durable_file &operator=(const durable_file &) = delete;

    const std::string &part() const noexcept { return part_; }
    /** Rename, fsync of the directory. fsync of the content is the writer's. Throws error. */
    void finish();

  private:
    std::string path_, part_, place_;
    descriptor directory_;
    bool finished_ = false;
};

/**
 * What goes by way of the page cache is handed on to the disk bit by bit, and dropped from the
 * cache then: at most two bits of 4 MiB wait in memory, and a file does not have its full length
 * long before the disk has it.
 */
class handing_on {
  public:
    explicit handing_on(int fd) : fd_(fd) {}
    /** @written: bytes from the beginning, all of them written. What is wrong shows in fsync(2). */
    void reached(std::size_t written);

  private:
    static constexpr std::size_t kBit = 4 << 20;
    int fd_;
    std::size_t begun_ = 0;
};

} // namespace zc

#endif
