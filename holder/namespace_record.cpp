/* SPDX-License-Identifier: BSD-3-Clause */
#include "namespace_record.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "crc32c.h"
#include "error.h"
#include "host_name.h"
#include "id_map.h"
#include "named_file.h"
#include "request_server.h"

namespace zc::holder {
namespace {

namespace fs = std::filesystem;

constexpr const char *kPrefix = "user-namespace-";
constexpr int kTurns = 1000; /* of a millisecond, for what takes one */

struct entry {
    pid_t pid;
    ino_t space;
};

std::string text_of(int fd)
{
    struct stat found {};
    fstat(fd, &found);
    std::string text(static_cast<std::size_t>(found.st_size), '\0');
    const ssize_t got = pread(fd, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
}

std::vector<entry> entries_in(int fd)
{
    std::vector<entry> all;
    std::istringstream text(text_of(fd));
    for (entry one{}; text >> one.pid >> one.space;)
        all.push_back(one);
    return all;
}

descriptor user_namespace_of(pid_t pid)
{
    return descriptor{
        open(("/proc/" + std::to_string(pid) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC)};
}

descriptor space_of(const entry &one)
{
    descriptor space = user_namespace_of(one.pid);
    const bool is_it = space.fd >= 0 && number_of_namespace(space) == one.space &&
                       one.space != number_of_namespace(user_namespace_of(getpid())) &&
                       id_map_of(one.pid, "uid_map") == same_number(geteuid()) &&
                       id_map_of(one.pid, "gid_map") == same_number(getegid());
    return is_it ? std::move(space) : descriptor{};
}

/** No process keeps the others up that is stopped meanwhile. */
void lock(int fd, const std::string &path)
{
    for (int turn = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; turn++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            throw_errno(errno, path);
        if (turn == kTurns)
            throw error(EBUSY, path + " is locked all the time");
        usleep(1000);
    }
}

descriptor locked(const std::string &path)
{
    for (;;) {
        descriptor file{open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
        if (file.fd < 0)
            throw_errno(errno, path);
        lock(file.fd, path);
        if (is_named(file.fd, path)) /* or it was removed meanwhile */
            return file;
    }
}

/** Whose processes this one can look for: hosts may have the folder in common. */
std::string of_this_host()
{
    return "@" + host_name();
}

void remove_left_over(const fs::path &folder, const fs::path &own)
{
    std::error_code failed;
    for (const auto &each : fs::directory_iterator(folder, failed)) {
        const std::string path = each.path(), name = each.path().filename();
        if (path == own || !name.starts_with(kPrefix) || !name.ends_with(of_this_host()))
            continue;
        const descriptor file{open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
        if (file.fd < 0 || flock(file.fd, LOCK_EX | LOCK_NB) != 0 || !is_named(file.fd, path))
            continue;
        bool is_used = false;
        for (const entry &one : entries_in(file.fd))
            is_used = is_used || number_of_namespace(user_namespace_of(one.pid)) == one.space;
        if (!is_used)
            unlink(path.c_str());
    }
}

} // namespace

ino_t number_of_namespace(const descriptor &space)
{
    struct stat found {};
    return space.fd >= 0 && fstat(space.fd, &found) == 0 ? found.st_ino : 0;
}

namespace_record::namespace_record(const std::string &job)
{
    const fs::path folder = request_directory();
    if (folder.empty())
        throw error(EACCES, "there is no folder for what its ranks share");
    const fs::path own =
        folder / (kPrefix + std::to_string(getegid()) + "-" +
                  std::to_string(zc_crc32c(0, job.data(), job.size())) + of_this_host());
    file_ = locked(own);
    remove_left_over(folder, own);
}

descriptor namespace_record::found() const
{
    for (const entry &one : entries_in(file_.fd)) {
        descriptor space = space_of(one);
        if (space.fd >= 0)
            return space;
    }
    return {};
}

void namespace_record::add(const descriptor &space, bool is_new)
{
    const std::string line =
        std::to_string(getpid()) + " " + std::to_string(number_of_namespace(space)) + "\n";
    const off_t end = is_new ? 0 : lseek(file_.fd, 0, SEEK_END);
    if ((is_new && ftruncate(file_.fd, 0) != 0) ||
        pwrite(file_.fd, line.data(), line.size(), end) != static_cast<ssize_t>(line.size()))
        throw_errno(errno, "what its ranks share");
}

} // namespace zc::holder
