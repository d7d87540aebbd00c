/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <cstdint>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <vector>

namespace zc::migrate {

/** A file that is mapped into this process, as /proc/self/maps has it. */
struct mapped_file {
    std::uintptr_t begin = 0, end = 0;
    dev_t device = 0;
    std::uint64_t inode = 0;
    std::string path; /* where the file is by now, if it is anywhere */
};

/** All that are, in the order of their addresses. */
std::vector<mapped_file> mapped_files();

/** The first of @files that is within @begin and @end; one without a number if there is none. */
mapped_file first_within(const std::vector<mapped_file> &files, std::uintptr_t begin,
                         std::uintptr_t end);

/** The file that is mapped, open to be read, as long as it has a name. */
class open_file_of {
  public:
    /**
     * Under its own @path there may be another file by now: it was replaced, maybe over NFS,
     * whereof the kernel here knows nothing; or the path was relative, and the process is
     * elsewhere. Then the kernel may know where it went (a file that was renamed).
     */
    open_file_of(const std::string &path, const mapped_file &mapped);
    ~open_file_of();
    open_file_of(const open_file_of &) = delete;
    open_file_of &operator=(const open_file_of &) = delete;

    explicit operator bool() const noexcept { return file_ >= 0; }
    bool has_changed_since(const struct stat &then) const noexcept;
    const struct stat &facts() const noexcept { return facts_; }
    /** "" if it cannot be read. */
    std::string checksum() const;

  private:
    bool open_if_same(const std::string &path, const mapped_file &mapped);

    int file_ = -1;
    struct stat facts_ = {};
};

} // namespace zc::migrate
