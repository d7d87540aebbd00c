/* SPDX-License-Identifier: BSD-3-Clause */
#include "zch/rank_traffic.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "error.h"
#include "named_file.h"
#include "request_server.h"
#include "runtime_directory.h"
#include "zch/rank_mark.h"

namespace zc::holder {
namespace {

constexpr const char *kBegin = "traffic-", *kPartial = ".traffic-";
constexpr time_t kMaking = 60; /* seconds; it takes microseconds */
constexpr std::size_t kBytes = sizeof(traffic_header) + kTrafficEntries * sizeof(traffic_entry);

std::string name_of(const held_rank &whose)
{
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "%s%016llx.%d", kBegin,
                  static_cast<unsigned long long>(number_of_job(whose.job)), whose.rank);
    return name.data();
}

/** A process has it. */
bool is_locked(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB) != 0 || flock(fd, LOCK_UN) != 0;
}

descriptor opened(const std::string &path)
{
    descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    struct stat found;
    if (file.fd >= 0 && (fstat(file.fd, &found) != 0 || !S_ISREG(found.st_mode) ||
                         found.st_uid != geteuid() || found.st_size < static_cast<off_t>(kBytes)))
        file = descriptor{};
    return file;
}

/** Of a file that is being made, which is not locked yet. */
bool is_new(int fd)
{
    struct stat found;
    return fstat(fd, &found) != 0 || found.st_mtime + kMaking > time(nullptr);
}

/** The kernel would end the rank by SIGXFSZ, which comes to zc-hold, and is passed on. */
bool is_too_long(std::size_t bytes)
{
    rlimit longest{};
    return getrlimit(RLIMIT_FSIZE, &longest) == 0 && longest.rlim_cur < bytes;
}

} // namespace

void traffic_file::remove_left_over()
{
    std::error_code none;
    for (const auto &entry : std::filesystem::directory_iterator(request_directory(), none)) {
        const std::string name = entry.path().filename();
        const bool partial = name.starts_with(kPartial);
        if (!partial && !name.starts_with(kBegin))
            continue;
        const descriptor file{
            open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
        if (file.fd >= 0 && !(partial && is_new(file.fd)) &&
            flock(file.fd, LOCK_EX | LOCK_NB) == 0 && is_named(file.fd, entry.path()))
            unlink(entry.path().c_str());
    }
}

traffic_file::traffic_file(const held_rank &whose)
{
    const std::string folder = request_directory();
    if (folder.empty())
        throw error(EACCES, "there is no folder for what it sends");
    if (whose.rank == 0) /* one rank of a job: each looks at the files of all */
        remove_left_over();
    if (is_too_long(kBytes))
        throw error(EFBIG, "its limit of the size of files (ulimit -f)");
    path_ = folder + "/" + name_of(whose);
    std::string partial = folder + "/" + kPartial + "XXXXXX";
    file_ = descriptor{mkostemp(partial.data(), O_CLOEXEC)};
    if (file_.fd < 0)
        throw_errno(errno, partial);
    traffic_header header{};
    header.magic = kTrafficMagic;
    header.entries = kTrafficEntries;
    header.job = number_of_job(whose.job);
    header.rank = static_cast<std::uint32_t>(whose.rank);
    header.world = static_cast<std::uint32_t>(whose.size);
    /* Allocated: the rank is not to end by SIGBUS if the folder is full. */
    int why = flock(file_.fd, LOCK_EX | LOCK_NB) != 0 ? errno : 0;
    if (why == 0)
        why = posix_fallocate(file_.fd, 0, kBytes);
    if (why == 0 && pwrite(file_.fd, &header, sizeof header, 0) != sizeof header)
        why = errno;
    if (why == 0 && rename(partial.c_str(), path_.c_str()) != 0)
        why = errno;
    if (why != 0) {
        unlink(partial.c_str());
        throw_errno(why, partial);
    }
}

traffic_file::~traffic_file()
{
    if (is_named(file_.fd, path_))
        unlink(path_.c_str());
}

traffic_reader::traffic_reader(const held_rank &whose)
    : name_(name_of(whose)), job_(number_of_job(whose.job)),
      rank_(static_cast<std::uint32_t>(whose.rank)), world_(static_cast<std::uint32_t>(whose.size))
{
}

/** The file of the zc-hold that has the rank now; one that a killed process has left does not
 * count. */
bool traffic_reader::open_newest()
{
    std::array<char, PATH_MAX> folder{};
    for (int n = 0;
         n < ZCM_RUNTIME_PLACES && zcm_runtime_place(n, folder.data(), folder.size()) == 0; n++) {
        const std::string path = std::string(folder.data()) + "/" + name_;
        if (file_.fd >= 0 && is_named(file_.fd, path) && is_locked(file_.fd))
            return true;
        descriptor file = opened(path);
        if (file.fd < 0 || !is_locked(file.fd))
            continue;
        file_ = std::move(file);
        next_ = 0;
        return true;
    }
    file_ = descriptor{};
    return false;
}

bool traffic_reader::read_header(traffic_header &header) const
{
    return pread(file_.fd, &header, sizeof header, 0) == sizeof header &&
           header.magic == kTrafficMagic && header.entries == kTrafficEntries &&
           header.job == job_ && header.rank == rank_ && header.world == world_;
}

std::vector<traffic_entry> traffic_reader::read()
{
    traffic_header header{};
    missed_ = 0;
    told_ = open_newest() && read_header(header);
    if (!told_ || header.sent <= next_)
        return {};
    const std::uint64_t end = header.sent;
    std::vector<traffic_entry> ring(kTrafficEntries);
    const std::size_t bytes = ring.size() * sizeof ring[0];
    if (pread(file_.fd, ring.data(), bytes, sizeof header) != static_cast<ssize_t>(bytes) ||
        !read_header(header) || header.sent < end)
        return {};
    /* What the rank has reached meanwhile is not whole, nor is the entry that it is at. */
    const std::uint64_t whole =
        header.sent < kTrafficEntries ? 0 : header.sent - (kTrafficEntries - 1);
    const std::uint64_t from = std::max(next_, whole);
    missed_ = std::min(from, end) - next_;
    next_ = end;
    std::vector<traffic_entry> found;
    for (std::uint64_t nth = from; nth < end; nth++) {
        const traffic_entry &each = ring[nth % kTrafficEntries];
        if (each.receiver < world_)
            found.push_back(each);
    }
    return found;
}

} // namespace zc::holder
