/* SPDX-License-Identifier: BSD-3-Clause */
#include "promised_room.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "crc32c.h"
#include "error.h"
#include "memory_directory.h"
#include "saturated.h"

namespace zc::holder {
namespace {

using namespace std::chrono_literals;

/* Who adds up reads some records: whoever takes longer is stopped, or means no good. */
constexpr auto kLongest = 1s;
constexpr std::uint64_t kLittle = 1 << 10; /* KiB that are not worth a new record */

struct flock range(short type, off_t from, off_t bytes)
{
    struct flock all {};
    all.l_type = type;
    all.l_whence = SEEK_SET;
    all.l_start = from;
    all.l_len = bytes;
    return all;
}

bool lock(int fd, short type, off_t from, off_t bytes)
{
    struct flock what = range(type, from, bytes);
    return fcntl(fd, F_OFD_SETLK, &what) == 0;
}

bool is_locked(int fd, off_t from, off_t bytes)
{
    struct flock what = range(F_WRLCK, from, bytes);
    return fcntl(fd, F_OFD_GETLK, &what) == 0 && what.l_type != F_UNLCK;
}

/** Where the record is. The first place is that of the byte which is locked to add up. */
off_t place_of(unsigned number, std::size_t bytes)
{
    return static_cast<off_t>((number + 1) * bytes);
}

/** By which control groups this process is limited: equal ones are the same, if they are of the
 * same namespace. */
std::uint64_t group_of_process()
{
    std::ifstream file("/proc/self/cgroup");
    const std::string names{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    struct stat found {};
    stat("/proc/self/ns/cgroup", &found);
    return found.st_ino << 32 ^ zc_crc32c(0, names.data(), names.size());
}

} // namespace

std::string promised_room::where()
{
    return std::string(memory_directory::kWhere) + "/zc-hold-promises-" + std::to_string(geteuid());
}

/** Nobody else adds up until it is unlocked or closed. */
descriptor promised_room::locked(const std::string &path)
{
    descriptor file{
        open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)};
    struct stat found;
    if (file.fd < 0 || fstat(file.fd, &found) != 0)
        throw_errno(errno, path);
    if (!S_ISREG(found.st_mode) || found.st_uid != geteuid() || found.st_nlink > 1)
        throw error(EPERM, path + " is no file of this user's, or is another file, too");
    const auto until = std::chrono::steady_clock::now() + kLongest;
    while (!lock(file.fd, F_WRLCK, 0, 1)) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            throw_errno(errno, path);
        if (std::chrono::steady_clock::now() > until)
            throw error(EBUSY, path + " is locked all the time");
        std::this_thread::sleep_for(1ms);
    }
    struct stat named;
    if (lstat(path.c_str(), &named) != 0 || named.st_ino != found.st_ino)
        return locked(path); /* it was removed meanwhile */
    return file;
}

promised_memory promised_room::sum_of(int fd)
{
    promised_memory sum;
    const std::uint64_t group = group_of_process();
    for (unsigned number = 0; number < kMost; number++) {
        const off_t place = place_of(number, sizeof(record));
        record one;
        if (!is_locked(fd, place, sizeof one) || pread(fd, &one, sizeof one, place) != sizeof one)
            continue;
        sum.all = plus(sum.all, one.memory);
        if (one.group == group)
            sum.in_group = plus(sum.in_group, one.memory);
        sum.shared = plus(sum.shared, one.shared);
    }
    return sum;
}

promised_memory promised_room::made(const std::string &path)
{
    return sum_of(locked(path).fd);
}

promised_room promised_room::make(std::uint64_t kib, const decision &decide,
                                  const std::string &path)
{
    promised_room one;
    one.file_ = locked(path);
    const int fd = one.file_.fd;
    const promised_memory others = sum_of(fd);
    unsigned number = 0;
    while (number < kMost && !lock(fd, F_WRLCK, place_of(number, sizeof(record)), sizeof(record)))
        number++;
    const off_t place = place_of(number, sizeof(record));
    const record nothing{0, 0, kib, group_of_process()};
    /* Before anything is promised, so that there is room for the record itself. */
    if (number == kMost) {
        decide(others); /* the others' are known at least */
        return {};
    }
    if (pwrite(fd, &nothing, sizeof nothing, place) != sizeof nothing)
        throw_errno(errno, path);
    if (lseek(fd, place, SEEK_SET) != place)
        throw_errno(errno, path);
    const std::optional<host_memory> promised = decide(others);
    if (!promised)
        return {};
    one.all_ = one.now_ = nothing;
    one.all_.memory = promised->available;
    one.all_.shared = promised->shared;
    one.set(*promised);
    lock(fd, F_UNLCK, 0, 1);
    return one;
}

promised_room::promised_room(int fd) : file_(fd)
{
    const off_t place = lseek(fd, 0, SEEK_CUR);
    if (place < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        throw_errno(errno, "the room that is promised");
    if (pread(fd, &all_, sizeof all_, place) != sizeof all_)
        throw error(EBADMSG, "the room that is promised has no record");
    now_ = all_;
}

void promised_room::set(const host_memory &left)
{
    const record next{left.available, left.shared, all_.rank, all_.group};
    /* What cannot be written stays promised, which is too much: a move less. */
    if (file_.fd >= 0 &&
        pwrite(file_.fd, &next, sizeof next, lseek(file_.fd, 0, SEEK_CUR)) == sizeof next)
        now_ = next;
}

void promised_room::came(std::uint64_t kib)
{
    const host_memory left = {without(all_.memory, kib), without(all_.shared, kib)};
    if (now_.memory >= plus(left.available, kLittle) || now_.shared >= plus(left.shared, kLittle))
        set(left);
}

void promised_room::rank_has(std::uint64_t kib)
{
    const std::uint64_t left = without(all_.rank, kib);
    if (now_.shared > 0 || now_.memory >= plus(left, kLittle) || left >= plus(now_.memory, kLittle))
        set({left, 0});
}

} // namespace zc::holder
