/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory_directory.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

#include <spdlog/spdlog.h>

#include "error.h"
#include "named_file.h"

namespace zc::holder {
namespace {

/* Versions without a lock had "zc-hold-" and six characters. */
constexpr const char *kName = "zc-hold-images-";

descriptor locked(const std::filesystem::path &path)
{
    descriptor fd{open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (fd.fd >= 0 && flock(fd.fd, LOCK_EX | LOCK_NB) != 0)
        fd = descriptor{};
    return fd;
}

bool is_ours(int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 && found.st_uid == geteuid();
}

} // namespace

memory_directory::memory_directory()
{
    if (const int removed = remove_left_over())
        spdlog::warn("{} images of processes that were killed are removed from {}", removed,
                     kWhere);
    do {
        std::string name = std::string(kWhere) + "/" + kName + "XXXXXX";
        if (mkdtemp(name.data()) == nullptr)
            throw_errno(errno, name);
        path_ = name;
        lock_ = locked(path_);
    } while (lock_.fd < 0 || !is_named(lock_.fd, path_));
}

memory_directory::~memory_directory()
{
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

int memory_directory::remove_left_over()
{
    int removed = 0;
    std::error_code ignored;
    for (const auto &entry : std::filesystem::directory_iterator(kWhere, ignored)) {
        if (!entry.path().filename().string().starts_with(kName))
            continue;
        const descriptor lock = locked(entry.path());
        if (lock.fd >= 0 && is_ours(lock.fd) &&
            std::filesystem::remove_all(entry.path(), ignored) > 0)
            removed++;
    }
    return removed;
}

bool memory_directory::is_any_there()
{
    std::error_code ignored;
    struct stat found;
    for (const auto &entry : std::filesystem::directory_iterator(kWhere, ignored)) {
        if (entry.path().filename().string().starts_with(kName) &&
            lstat(entry.path().c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
            found.st_uid == geteuid())
            return true;
    }
    return false;
}

} // namespace zc::holder
