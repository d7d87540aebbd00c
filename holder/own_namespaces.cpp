/* SPDX-License-Identifier: BSD-3-Clause */
#include "own_namespaces.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <string_view>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "capabilities.h"
#include "descriptor.h"
#include "error.h"
#include "id_map.h"
#include "namespace_record.h"
#include "soft_limits.h"

namespace zc::holder {
namespace {

constexpr const char *kLastNumber = "/proc/sys/kernel/ns_last_pid";

/** Returns 0, or errno. */
int write_map(const char *path, const std::string &text)
{
    const descriptor file{open(path, O_WRONLY | O_CLOEXEC)};
    return file.fd < 0 || write(file.fd, text.data(), text.size()) < 0 ? errno : 0;
}

std::string text_of(const id_map &map)
{
    std::string text;
    for (const std::uint64_t number : map)
        text += std::to_string(number) + " ";
    return text;
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
    /* Those of the process that makes it bind all that enter (user_namespaces(7)). */
    raise_limits({RLIMIT_NPROC, RLIMIT_MSGQUEUE, RLIMIT_SIGPENDING, RLIMIT_MEMLOCK});
    if (fails(unshare(CLONE_NEWUSER) == 0 ? 0 : errno, ""))
        return found;
    const std::pair<const char *, std::string> maps[] = {
        {"/proc/self/uid_map", text_of(same_number(user))},
        /* Without privilege the kernel asks for this: a group may be what keeps its members out. */
        {"/proc/self/setgroups", "deny"},
        {"/proc/self/gid_map", text_of(same_number(group))}};
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

void enter(const descriptor &space)
{
    if (setns(space.fd, CLONE_NEWUSER) != 0)
        throw_errno(errno, "a user namespace");
}

} // namespace

bool needs_user_namespace()
{
    return geteuid() != 0 && !has_capabilities_for_criu();
}

void enter_user_namespace()
{
    enter(new_user_namespace());
}

void enter_user_namespace(const std::string &job)
{
    namespace_record others(job);
    descriptor space = others.found();
    const bool is_new = space.fd < 0;
    if (is_new)
        space = new_user_namespace();
    others.add(space, is_new);
    enter(space);
}

std::string root_reason()
{
    const id_map map = id_map_of(getpid(), "uid_map");
    const bool is_hosts = map.size() == 3 && map[0] == 0 && map[1] == 0 && map[2] == UINT32_MAX;
    return geteuid() != 0 || is_hosts ? "" : "its zc-hold is root of a user namespace only";
}

bool is_in_own_user_namespace()
{
    return id_map_of(getpid(), "uid_map") == same_number(geteuid());
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
    if (!numbers && geteuid() != 0) /* root had another way until now, and mostly it goes well */
        throw_errno(errno, std::string("a PID namespace: ") + kLastNumber);
}

} // namespace zc::holder
