/* SPDX-License-Identifier: BSD-3-Clause */
#include "directory_lock.h"

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "error.h"

namespace zc::migrate {

using nlohmann::json;

namespace {

std::string holder_in(int fd)
{
    char text[1024];
    const ssize_t length = pread(fd, text, sizeof text, 0);
    const json who = json::parse(text, text + std::max<ssize_t>(length, 0), nullptr, false);
    if (!who.is_object())
        return "another job";
    return "job " + who.value("name", "?") + " (number " + who.value("job", "?") +
           ", rank 0 is process " + std::to_string(who.value("pid", 0)) + " on " +
           who.value("host", "?") + ")";
}

} // namespace

directory_lock::directory_lock(const std::string &directory, const lineage &who)
{
    std::error_code trouble;
    std::filesystem::create_directories(directory, trouble);
    if (trouble)
        throw_errno(trouble.value(), directory);
    const std::string path = directory + "/lock";
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0)
        throw_errno(errno, path);
    while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
        const int code = errno;
        if (code == EINTR)
            continue;
        if (code == EWOULDBLOCK) {
            const std::string holder = holder_in(fd_);
            close(fd_);
            throw error(EBUSY, holder + " saves in " + directory +
                                   ": give this one a directory of its own (ZC_MIGRATE_DIR)");
        }
        problem_ = std::strerror(code);
        return;
    }
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const std::string text =
        json{{"job", digits_of(who.job)}, {"name", who.name}, {"host", host}, {"pid", getpid()}}
            .dump() +
        "\n";
    /* For people only: the lock holds without it. */
    if (ftruncate(fd_, 0) == 0)
        static_cast<void>(!pwrite(fd_, text.data(), text.size(), 0));
}

directory_lock::~directory_lock()
{
    close(fd_);
}

} // namespace zc::migrate
