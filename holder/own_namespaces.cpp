/* SPDX-License-Identifier: BSD-3-Clause */
#include "own_namespaces.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <string_view>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "capabilities.h"
#include "descriptor.h"
#include "error.h"

namespace zc::holder {
namespace {

constexpr const char *kLastNumber = "/proc/sys/kernel/ns_last_pid";
constexpr int kTurns = 1000; /* of a millisecond, for what takes one */

/** Returns 0, or errno. */
int write_map(const char *path, const std::string &text)
{
    const descriptor file{open(path, O_WRONLY | O_CLOEXEC)};
    return file.fd < 0 || write(file.fd, text.data(), text.size()) < 0 ? errno : 0;
}

std::string same_number(unsigned id)
{
    return std::to_string(id) + " " + std::to_string(id) + " 1";
}

/** What has failed, and why; or nothing. */
struct failure {
    int code = 0;
    std::array<char, 32> what{};
};

failure make_user_namespace(uid_t user, gid_t group)
{
    failure found;
    const auto fails = [&found](int code, std::string_view what) {
        found.code = code;
        what.copy(found.what.data(), found.what.size() - 1);
        return code != 0;
    };
    if (fails(unshare(CLONE_NEWUSER) == 0 ? 0 : errno, ""))
        return found;
    const std::pair<const char *, std::string> maps[] = {
        {"/proc/self/uid_map", same_number(user)},
        /* Without privilege the kernel asks for this: a group may be what keeps its members out. */
        {"/proc/self/setgroups", "deny"},
        {"/proc/self/gid_map", same_number(group)}};
    for (const auto &[path, text] : maps) {
        if (fails(write_map(path, text), std::string(": ") + path))
            break;
    }
    return found;
}

/** Made by a child: in one whose maps cannot be written a process is nobody. */
descriptor new_user_namespace()
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw_errno(errno, "socketpair");
    descriptor ours{ends[0]}, theirs{ends[1]};
    const uid_t user = geteuid();
    const gid_t group = getegid();
    const pid_t child = fork();
    if (child < 0)
        throw_errno(errno, "fork");
    if (child == 0) {
        ours = descriptor{};
        failure found = make_user_namespace(user, group);
        if (write(theirs.fd, &found, sizeof found) == sizeof found)
            (void)!read(theirs.fd, &found, 1); /* until it has been opened */
        _exit(0);
    }
    theirs = descriptor{};
    failure found{ECHILD, {}};
    const bool told = read(ours.fd, &found, sizeof found) == sizeof found;
    descriptor made{
        open(("/proc/" + std::to_string(child) + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC)};
    const int code = !told || found.code != 0 ? found.code : made.fd < 0 ? errno : 0;
    ours = descriptor{};
    waitpid(child, nullptr, 0);
    if (code != 0)
        throw_errno(code, std::string("a user namespace") + found.what.data());
    return made;
}

ino_t number_of(const descriptor &space)
{
    struct stat found {};
    return space.fd >= 0 && fstat(space.fd, &found) == 0 ? found.st_ino : 0;
}

descriptor user_namespace_of(const std::string &process)
{
    return descriptor{open(("/proc/" + process + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC)};
}

bool enter(const descriptor &space)
{
    return setns(space.fd, CLONE_NEWUSER) == 0;
}

/** Held for a moment by each process that begins. One that is stopped meanwhile keeps nobody up. */
bool lock(const descriptor &file)
{
    for (int turn = 0; file.fd >= 0 && turn < kTurns; turn++) {
        if (flock(file.fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        usleep(1000);
    }
    return false;
}

/** Of a process that may have ended, and whose number may be another's. */
bool enter_that_of_record(const descriptor &record)
{
    std::array<char, 64> text{};
    long pid = 0;
    unsigned long long number = 0;
    if (pread(record.fd, text.data(), text.size() - 1, 0) <= 0 ||
        std::sscanf(text.data(), "%ld %llu", &pid, &number) != 2 || pid <= 0)
        return false;
    const descriptor space = user_namespace_of(std::to_string(pid));
    return number_of(space) == number && number != number_of(user_namespace_of("self")) &&
           enter(space);
}

void write_record(const descriptor &record, ino_t number)
{
    const std::string text = std::to_string(getpid()) + " " + std::to_string(number) + "\n";
    if (ftruncate(record.fd, 0) != 0 ||
        pwrite(record.fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        return; /* then the next process has one of its own */
}

/** As user_namespaces(7) has it: three numbers a line. */
std::vector<std::uint64_t> own_users()
{
    std::ifstream map("/proc/self/uid_map");
    return {std::istream_iterator<std::uint64_t>(map), {}};
}

} // namespace

bool needs_user_namespace()
{
    return geteuid() != 0 && !has_capabilities_for_criu();
}

void enter_user_namespace(const std::string &record)
{
    const descriptor file{
        record.empty() ? -1
                       : open(record.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
    const bool locked = lock(file);
    if (locked && enter_that_of_record(file))
        return;
    const descriptor made = new_user_namespace();
    if (!enter(made))
        throw_errno(errno, "a user namespace");
    if (locked)
        write_record(file, number_of(made));
}

std::string root_reason()
{
    const std::vector<std::uint64_t> map = own_users();
    const bool is_hosts = map.size() == 3 && map[0] == 0 && map[1] == 0 && map[2] == UINT32_MAX;
    return geteuid() != 0 || is_hosts ? "" : "its zc-hold is root of a user namespace only";
}

bool is_in_own_user_namespace()
{
    return own_users() == std::vector<std::uint64_t>{geteuid(), geteuid(), 1};
}

void become_first_of_namespaces(pid_t last_number)
{
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
        throw_errno(errno, "a PID namespace");
    const pid_t first = fork();
    if (first < 0)
        throw_errno(errno, "fork");
    if (first > 0)
        _exit(0);
    if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
        throw_errno(errno, "a PID namespace: /proc");
    std::ofstream numbers(kLastNumber);
    numbers << last_number << std::flush;
    if (!numbers)
        throw_errno(errno, std::string("a PID namespace: ") + kLastNumber);
}

} // namespace zc::holder
