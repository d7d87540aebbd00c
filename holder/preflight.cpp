/* SPDX-License-Identifier: BSD-3-Clause */
#include "preflight.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <linux/seccomp.h>
#include <map>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "boot_time.h"
#include "crc32c.h"
#include "descriptor.h"
#include "own_namespaces.h"
#include "time_namespace.h"

namespace zc::holder {
namespace {

namespace fs = std::filesystem;
using reasons = std::vector<std::string>;

constexpr std::size_t kHead = 64 << 10; /* of a file; that of a program has its build-id */
constexpr std::array kDevices = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                 "/dev/urandom"};
/* What CRIU carries, if the program has it for itself. */
constexpr std::array kAnonymous = {"anon_inode:[eventfd]", "anon_inode:[eventpoll]",
                                   "anon_inode:[signalfd]", "anon_inode:[timerfd]"};

template <typename set>
bool among(const set &these, const std::string &one)
{
    return std::find(these.begin(), these.end(), one) != these.end();
}

std::string proc(pid_t pid, const std::string &name)
{
    return "/proc/" + std::to_string(pid) + "/" + name;
}

std::string text_of(const std::string &path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/** Of a file of lines "NAME:   NUMBER ...". */
std::uint64_t number_of(const std::string &path, const std::string &name)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(name + ":"))
            return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
    }
    return 0;
}

bool is_deleted(const std::string &path)
{
    return path.ends_with(" (deleted)");
}

/** Those that CRIU finds there again. */
bool is_of_process(const std::string &path, pid_t pid)
{
    return path.starts_with(proc(pid, ""));
}

void look_at_environment(pid_t pid, reasons &found)
{
    std::istringstream all(text_of(proc(pid, "environ")));
    for (std::string each; std::getline(all, each, '\0');) {
        if (each.starts_with("PMIX_NAMESPACE="))
            found.emplace_back(
                "it is connected to a PMIx server (Open MPI), which is on this host");
    }
}

void look_at_process(pid_t pid, reasons &found)
{
    if (const auto tracer = number_of(proc(pid, "status"), "TracerPid"))
        found.push_back("process " + std::to_string(tracer) + " traces it");
    std::error_code gone;
    for (const auto &task : fs::directory_iterator(proc(pid, "task"), gone)) {
        std::istringstream children(text_of(task.path() / "children"));
        for (pid_t child; children >> child;) {
            std::string name = text_of(proc(child, "comm"));
            if (!name.empty())
                name.pop_back();
            found.push_back("it has a child, process " + std::to_string(child) + " (" + name + ")");
        }
    }
    struct stat own;
    if (geteuid() != 0) { /* CRIU, which would find out when the rank has left */
        if (number_of(proc(pid, "status"), "Seccomp") == SECCOMP_MODE_FILTER)
            found.emplace_back("it has a filter of seccomp(2)");
        if (stat(proc(pid, "status").c_str(), &own) == 0 && own.st_uid != geteuid())
            found.emplace_back("it is not dumpable (prctl(2))");
    }
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);) {
        std::istringstream words(line);
        std::string number, kind, how, mode, owner;
        words >> number >> kind >> how >> mode >> owner;
        if (owner == std::to_string(pid))
            found.push_back("it has a lock on a file (" + kind + ", " + mode + ")");
    }
}

/** How often the program itself has the pipe: both halves, if both modes. */
std::map<std::string, int> modes_of_pipes(pid_t pid)
{
    std::map<std::string, int> modes;
    std::error_code gone;
    for (const auto &entry : fs::directory_iterator(proc(pid, "fd"), gone)) {
        const std::string target = fs::read_symlink(entry, gone);
        struct stat link;
        if (target.starts_with("pipe:") && lstat(entry.path().c_str(), &link) == 0)
            modes[target] |= static_cast<int>(link.st_mode & (S_IRUSR | S_IWUSR));
    }
    return modes;
}

std::string descriptor_reason(const std::string &target, pid_t pid, bool detached,
                              const std::map<std::string, int> &pipes)
{
    if (target.starts_with("pipe:"))
        return pipes.at(target) == (S_IRUSR | S_IWUSR) ? "" : "a pipe to another process";
    if (target.starts_with("socket:"))
        return detached ? "a socket" : "";
    if (target.starts_with("anon_inode:"))
        return detached && !among(kAnonymous, target) ? target.substr(11) : "";
    if (!target.starts_with("/"))
        return target;
    if (is_of_process(target, pid) || among(kDevices, target))
        return "";
    if (target.starts_with("/dev/") && !target.starts_with("/dev/shm/"))
        return detached || !target.starts_with("/dev/infiniband") ? "the device " + target : "";
    if (is_deleted(target))
        return detached ? "a file that has no name any more, " + target : "";
    return "";
}

void look_at_descriptors(pid_t pid, const std::vector<end> &ends, bool detached, reasons &found)
{
    const auto pipes = modes_of_pipes(pid);
    std::error_code gone;
    for (const auto &entry : fs::directory_iterator(proc(pid, "fd"), gone)) {
        const std::string target = fs::read_symlink(entry, gone);
        const bool is_ours = std::any_of(ends.begin(), ends.end(),
                                         [&](const end &each) { return each.name() == target; });
        if (is_ours || (target.starts_with("pipe:") && !pipes.contains(target)))
            continue;
        const std::string reason = descriptor_reason(target, pid, detached, pipes);
        if (!reason.empty())
            found.push_back("descriptor " + entry.path().filename().string() + " is " + reason);
    }
}

/** The paths of /proc/PID/maps, with "s" or "p" before. */
std::set<std::string> mapped(pid_t pid)
{
    std::set<std::string> paths;
    std::ifstream maps(proc(pid, "maps"));
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        std::string range, mode, offset, device, inode, path;
        words >> range >> mode >> offset >> device >> inode >> std::ws;
        std::getline(words, path);
        if (path.starts_with("/") && mode.size() == 4)
            paths.insert(mode.substr(3) + path);
    }
    return paths;
}

void look_at_mappings(pid_t pid, bool detached, reasons &found)
{
    for (const std::string &each : mapped(pid)) {
        const std::string path = each.substr(1);
        const bool shared = each[0] == 's';
        if (path.starts_with("/SYSV")) /* of UCX's a rank that can be detached has none */
            found.push_back("it has System V shared memory, " + path);
        else if (!detached)
            continue;
        else if (path.starts_with("/dev/shm/") && shared)
            found.push_back("it has POSIX shared memory, " + path);
        else if (path.starts_with("/dev/") && !path.starts_with("/dev/zero") &&
                 !path.starts_with("/dev/shm/"))
            found.push_back("it has mapped the device " + path);
        else if (shared && is_deleted(path) && !path.starts_with("/dev/zero"))
            found.push_back("it has shared memory of a file that has no name any more, " + path);
    }
}

/** @path is what @fd has: one file has several names. */
bool is_file(const std::string &path, int fd)
{
    struct stat named, held;
    return fd >= 0 && fstat(fd, &held) == 0 && stat(path.c_str(), &named) == 0 &&
           named.st_ino == held.st_ino && named.st_dev == held.st_dev;
}

/** Size, inode, when it was made, and the sum of its first bytes; null if it is no regular file. */
nlohmann::json identity_of(const std::string &path)
{
    const descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    struct statx found;
    if (file.fd < 0 ||
        statx(file.fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &found) != 0 ||
        !S_ISREG(found.stx_mode))
        return nullptr;
    std::string head(kHead, '\0');
    const ssize_t got = pread(file.fd, head.data(), head.size(), 0);
    const std::size_t length = got > 0 ? static_cast<std::size_t>(got) : 0;
    return {{"bytes", found.stx_size},
            {"crc", zc_crc32c(0, head.data(), length)},
            {"inode", found.stx_ino},
            {"made", found.stx_btime.tv_sec},
            {"made_ns", found.stx_btime.tv_nsec}};
}

/** The one file, on a file system that both hosts have; it may change meanwhile. */
bool is_same_file(const nlohmann::json &here, const nlohmann::json &there)
{
    return here.at("inode") == there.at("inode") && here.at("made") == there.at("made") &&
           here.at("made_ns") == there.at("made_ns");
}

/** As far as length and beginning tell. */
bool is_same_content(const nlohmann::json &here, const nlohmann::json &there)
{
    return here.at("bytes") == there.at("bytes") && here.at("crc") == there.at("crc");
}

/** Open for writing, by /proc/PID/fd/N. */
bool is_writable(const fs::path &entry)
{
    struct stat link;
    return lstat(entry.c_str(), &link) == 0 && (link.st_mode & S_IWUSR);
}

std::set<std::string> processor_features()
{
    std::ifstream file("/proc/cpuinfo");
    std::set<std::string> features;
    for (std::string line; std::getline(file, line) && features.empty();) {
        if (line.starts_with("flags") || line.starts_with("Features")) {
            std::istringstream words(line.substr(line.find(':') + 1));
            for (std::string word; words >> word;)
                features.insert(word);
        }
    }
    return features;
}

/* The kernel begins there again when it has come to the end (RESERVED_PIDS). */
constexpr pid_t kFirstNumber = 300, kSpareNumbers = 1000;

struct limit {
    int which;
    const char *name;
};
/* Without which a program may fail; of the others it has what there is. */
constexpr std::array kLimits = {limit{RLIMIT_NOFILE, "open files"},
                                limit{RLIMIT_AS, "address space"}, limit{RLIMIT_DATA, "data"},
                                limit{RLIMIT_STACK, "stack"}};

nlohmann::json limits_of(pid_t pid)
{
    nlohmann::json found = nlohmann::json::object();
    for (const limit &each : kLimits) {
        rlimit now{};
        if (prlimit(pid, static_cast<__rlimit_resource>(each.which), nullptr, &now) == 0)
            found[each.name] = now.rlim_cur;
    }
    return found;
}

/** Only root has more than it was given. */
void look_at_limits(const nlohmann::json &needed, reasons &found)
{
    for (const limit &each : kLimits) {
        rlimit here{};
        const rlim_t need = needed.value(each.name, rlim_t{0});
        if (geteuid() != 0 && getrlimit(static_cast<__rlimit_resource>(each.which), &here) == 0 &&
            here.rlim_max < need)
            found.push_back(std::string("its limit of ") + each.name + " is " +
                            std::to_string(here.rlim_max) + ", and the rank's is " +
                            (need == RLIM_INFINITY ? "none" : std::to_string(need)));
    }
}

} // namespace

nlohmann::json credentials()
{
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(getgroups(0, nullptr), 0)));
    groups.resize(static_cast<std::size_t>(
        std::max(getgroups(static_cast<int>(groups.size()), groups.data()), 0)));
    std::sort(groups.begin(), groups.end());
    return {{"user", geteuid()},
            {"group", getegid()},
            {"groups", groups},
            {"namespace", needs_user_namespace()}};
}

std::string credentials_reason(const nlohmann::json &theirs, const nlohmann::json &here)
{
    const bool apart = theirs.at("namespace");
    if (apart != here.at("namespace").get<bool>())
        return std::string("its zc-hold has ") + (apart ? "" : "not ") +
               "the privilege to move ranks, and the rank's has " + (apart ? "not" : "it");
    if (!apart || theirs == here)
        return "";
    const auto text = [](const nlohmann::json &of) {
        return "user " + of.at("user").dump() + ", group " + of.at("group").dump() + ", groups " +
               of.at("groups").dump();
    };
    return "its zc-hold is of " + text(here) + ", and the rank of " + text(theirs);
}

std::vector<std::string> cannot_move(pid_t pid, const std::vector<end> &ends, bool detached)
{
    reasons found;
    look_at_environment(pid, found);
    look_at_process(pid, found);
    look_at_descriptors(pid, ends, detached, found);
    look_at_mappings(pid, detached, found);
    return found;
}

nlohmann::json needs_of(pid_t pid, int without)
{
    nlohmann::json files = nlohmann::json::object();
    for (const std::string &each : mapped(pid)) {
        const std::string path = each.substr(1);
        if (!path.starts_with("/dev/") && !path.starts_with("/SYSV") && !is_deleted(path) &&
            !is_of_process(path, pid) && !is_file(path, without))
            files[path] = {{"is", identity_of(path)}, {"shared", each[0] == 's'}};
    }
    std::error_code gone;
    for (const auto &entry : fs::directory_iterator(proc(pid, "fd"), gone)) {
        const std::string path = fs::read_symlink(entry, gone);
        if (!path.starts_with("/") || path.starts_with("/dev/") || is_deleted(path) ||
            path.starts_with("/proc/") || is_file(path, without))
            continue;
        files[path] = {{"is", identity_of(path)}, {"shared", is_writable(entry.path())}};
    }
    nlohmann::json tasks = nlohmann::json::array();
    for (const auto &task : fs::directory_iterator(proc(pid, "task"), gone))
        tasks.push_back(std::stoi(task.path().filename()));
    const std::string directory = fs::read_symlink(proc(pid, "cwd"), gone);
    return {{"files", files},           {"tasks", tasks},
            {"directory", directory},   {"booted", boot_time(pid)},
            {"limits", limits_of(pid)}, {"features", processor_features()},
            {"kib", memory_of(pid)}};
}

std::uint64_t memory_of(pid_t pid)
{
    return number_of(proc(pid, "status"), "VmRSS") + number_of(proc(pid, "status"), "VmSwap");
}

std::vector<std::string> lacks(const nlohmann::json &needs)
{
    reasons found;
    for (const auto &[path, file] : needs.at("files").items()) {
        const nlohmann::json here = identity_of(path), &there = file.at("is");
        if (here.is_null() && !there.is_null())
            found.push_back("it has no file " + path);
        else if (there.is_null())
            continue; /* a folder, or what cannot be read: CRIU says what is wrong with it */
        else if (file.at("shared").get<bool>() ? !is_same_file(here, there)
                                               : !is_same_content(here, there))
            found.push_back("its file " + path + " is another");
    }
    const std::string directory = needs.at("directory");
    if (access(directory.c_str(), X_OK) != 0)
        found.push_back("it has no folder " + directory);
    const auto features = processor_features();
    reasons missing;
    for (const std::string feature : needs.at("features")) {
        if (!features.contains(feature))
            missing.push_back(feature);
    }
    if (!missing.empty())
        found.push_back("its processor has not: " + joined(missing));
    const std::string clock =
        clock_reason(needs.at("booted"), boot_time(getpid()), makes_time_namespaces());
    if (!clock.empty())
        found.push_back(clock);
    look_at_limits(needs.value("limits", nlohmann::json::object()), found);
    return found;
}

bool has_taken(const nlohmann::json &needs)
{
    const auto &tasks = needs.at("tasks");
    return std::any_of(tasks.begin(), tasks.end(), [](const nlohmann::json &task) {
        return access(("/proc/" + std::to_string(task.get<int>())).c_str(), F_OK) == 0;
    });
}

pid_t number_before_free(const nlohmann::json &needs)
{
    std::vector<pid_t> tasks = needs.at("tasks");
    std::sort(tasks.begin(), tasks.end());
    pid_t most = 0, last = kFirstNumber;
    std::ifstream("/proc/sys/kernel/pid_max") >> most;
    tasks.push_back(most);
    for (const pid_t task : tasks) {
        if (task - last > kSpareNumbers)
            break;
        last = std::max(last, task);
    }
    return last < most ? last : kFirstNumber;
}

std::string joined(const std::vector<std::string> &reasons)
{
    std::string text;
    for (const std::string &each : reasons)
        text += (text.empty() ? "" : ", ") + each;
    return text;
}

} // namespace zc::holder
