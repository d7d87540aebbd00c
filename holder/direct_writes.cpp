/* SPDX-License-Identifier: BSD-3-Clause */
#include "direct_writes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <linux/kcmp.h>
#include <sstream>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "descriptor.h"
#include "error.h"

namespace zc::holder {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kAnonymous = {
    "[eventfd]", "[eventpoll]", "[signalfd]", "[timerfd]", "[pidfd]", "[userfaultfd]", "inotify"};
/* Documentation/admin-guide/devices.txt: null, zero, full, random, urandom; tty and its kin; and
 * pseudo-terminals. They copy while they are called. */
constexpr unsigned kMemory = 1, kTerminals = 5, kConsoles = 4, kPseudo = 136, kPseudoEnd = 144;
constexpr std::array<unsigned, 5> kOfMemory = {3, 5, 7, 8, 9};
/* Of it /dev/zc is harmless, too: it exchanges no page that is tracked. */
constexpr std::string_view kOurs = "/dev/zc";
constexpr int kWordsBeforePath = 5; /* of a line in /proc/PID/maps */
/* Others may have memory into which the kernel or the device writes by itself: AF_XDP, AF_RDS. */
constexpr std::array<int, 4> kFamilies = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

template <typename set, typename one>
bool among(const set &these, const one &this_one)
{
    return std::find(these.begin(), these.end(), this_one) != these.end();
}

bool is_harmless_device(dev_t device)
{
    const unsigned kind = major(device);
    return (kind == kMemory && among(kOfMemory, minor(device))) || kind == kTerminals ||
           kind == kConsoles || (kind >= kPseudo && kind < kPseudoEnd);
}

bool is_harmless_socket(int process, int number)
{
    const descriptor taken{static_cast<int>(syscall(SYS_pidfd_getfd, process, number, 0))};
    int family = -1;
    socklen_t length = sizeof family;
    return taken.fd >= 0 && getsockopt(taken.fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 &&
           among(kFamilies, family);
}

bool is_harmless(int process, const fs::directory_entry &entry, const std::string &target)
{
    constexpr std::string_view kKind = "anon_inode:";
    struct stat found;
    if (target.starts_with(kKind))
        return among(kAnonymous, target.substr(kKind.size()));
    if (target.starts_with("socket:"))
        return is_harmless_socket(process, std::stoi(entry.path().filename()));
    return target == kOurs || (stat(entry.path().c_str(), &found) == 0 &&
                               (!S_ISCHR(found.st_mode) || is_harmless_device(found.st_rdev)));
}

/** What @task has open, which is of @process. */
std::string direct_descriptor(int process, const fs::path &task)
{
    for (const auto &entry : fs::directory_iterator(task / "fd")) {
        std::string target = fs::read_symlink(entry);
        if (!is_harmless(process, entry, target))
            return target;
    }
    return {};
}

/** What is mapped stays when its descriptor is closed. */
bool is_harmless_mapping(const std::string &path)
{
    constexpr std::array<std::string_view, 4> kFiles = {"/dev/zero", "/dev/shm/", "/dev/hugepages/",
                                                        kOurs};
    const auto begins = [&path](std::string_view with) { return path.starts_with(with); };
    return !begins("anon_inode:") && !begins("socket:") &&
           (!begins("/dev/") || std::any_of(kFiles.begin(), kFiles.end(), begins));
}

std::string direct_mapping(const std::string &maps)
{
    std::ifstream file(maps);
    if (!file)
        throw_errno(errno, maps);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string before, path;
        for (int word = 0; word < kWordsBeforePath; word++)
            words >> before;
        std::getline(words >> std::ws, path);
        if (path.starts_with("/[aio]"))
            return "requests of io_submit(2)";
        if (path == "anon_inode:[io_uring]")
            return "a ring of io_uring(7)";
        if (!is_harmless_mapping(path))
            return "a mapping of " + path;
    }
    return {};
}

/** Another process that has the same memory, and need not be a child (CLONE_PARENT). One that this
 * process may not compare is of another user, who has executed a program since. */
std::string sharer_of_memory(pid_t pid)
{
    for (const auto &entry : fs::directory_iterator("/proc")) {
        const pid_t other = std::atoi(entry.path().filename().c_str());
        if (other > 0 && other != pid && syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0)
            return "memory that is that of process " + std::to_string(other) + ", too";
    }
    return {};
}

} // namespace

std::string direct_writer(pid_t pid)
{
    const fs::path proc = "/proc/" + std::to_string(pid);
    const descriptor process{static_cast<int>(syscall(SYS_pidfd_open, pid, 0))};
    std::string found = direct_descriptor(process.fd, proc);
    if (found.empty())
        found = direct_mapping(proc / "maps");
    if (found.empty())
        found = sharer_of_memory(pid);
    for (const auto &task : fs::directory_iterator(proc / "task")) {
        if (!found.empty())
            break;
        const pid_t tid = std::stoi(task.path().filename());
        if (tid != pid && syscall(SYS_kcmp, pid, tid, KCMP_FILES, 0, 0) != 0)
            found = "a thread with descriptors of its own"; /* they would be other ones here */
        std::ifstream children(task.path() / "children");
        if (!children)
            throw_errno(errno, task.path() / "children");
        if (pid_t child; found.empty() && children >> child)
            found = "a child, process " + std::to_string(child);
    }
    return found;
}

} // namespace zc::holder
