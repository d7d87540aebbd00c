/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers.h"

#include "kernel.h"
#include "proc_text.h"

#include <charconv>
#include <climits>
#include <cstdlib>
#include <link.h>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

namespace zc {

namespace {

constexpr unsigned kNvidiaMajor = 195;
constexpr unsigned kMiscMajor = 10, kVfioMinor = 196;

int open_for_reading(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC);
}

std::string parent_of(std::string_view path)
{
    return std::string(path.substr(0, path.rfind('/')));
}

/* Libraries that have been loaded since the process began. */
unsigned long long library_loads()
{
    unsigned long long loads = 0;
    dl_iterate_phdr(
        [](dl_phdr_info *info, std::size_t, void *out) {
            *static_cast<unsigned long long *>(out) = info->dlpi_adds;
            return 1;
        },
        &loads);
    return loads;
}

/** An entry of a folder, as getdents64(2) writes it; its name follows the type. */
struct entry {
    std::uint64_t inode;
    std::int64_t next;
    unsigned short size;
    unsigned char type;
};

/** Calls @each(descriptor) for those that are open. Return: could they be listed? */
template <typename F>
bool for_each_descriptor(int folder, F each)
{
    alignas(entry) std::array<char, 4096> buffer;
    for (;;) {
        long n = syscall(SYS_getdents64, folder, buffer.data(), buffer.size());
        if (n <= 0)
            return n == 0;
        for (long at = 0; at < n;) {
            const auto *e = reinterpret_cast<const entry *>(buffer.data() + at);
            const char *name = buffer.data() + at + offsetof(entry, type) + sizeof(e->type);
            int fd = -1;
            std::from_chars(name, name + std::strlen(name), fd);
            if (fd >= 0 && fd != folder)
                each(fd, name);
            at += e->size;
        }
    }
}

} // namespace

hold hold_of_file(std::string_view path, dev_t device)
{
    std::size_t slash = path.rfind('/');
    std::string_view name = path.substr(slash == path.npos ? 0 : slash + 1);
    std::string_view folder = path.substr(0, slash == path.npos ? 0 : slash);
    if (name == "knem")
        return hold::reference;
    bool vfio = folder.ends_with("/vfio") || folder.find("/vfio/") != folder.npos ||
                device == makedev(kMiscMajor, kVfioMinor);
    bool nvidia = name.starts_with("nvidia") || major(device) == kNvidiaMajor;
    return vfio || nvidia ? hold::pin : hold::none;
}

hold hold_of_mapping(std::string_view name)
{
    /* A process that has it will open the device next. */
    if (name.find("/libcuda.so") != name.npos)
        return hold::pin;
    return name.starts_with("/dev/") ? hold_of_file(name, 0) : hold::none;
}

drivers::drivers()
    : misc_(open_for_reading(kernel.misc_drivers)), taint_(open_for_reading(kernel.taint)),
      folder_(open_for_reading(parent_of(kernel.nvidia_driver).c_str())),
      outside_(nvidia_loaded() || listed("knem"))
{
}

drivers::~drivers()
{
    for (int fd : {misc_, taint_, folder_})
        if (fd >= 0)
            close(fd);
}

bool drivers::present() const
{
    return nvidia_loaded() || listed("vfio", "knem");
}

/** The like, as far as it may hold anything of this process. */
bool drivers::may_hold(bool locked)
{
    if (!outside_code())
        return locked && listed("vfio");
    return nvidia_loaded() || listed("knem", locked ? "vfio" : "");
}

/* Neither NVIDIA's driver nor KNEM is part of Linux. Bit 12 says that the kernel has
 * loaded a module that is not (Documentation/admin-guide/tainted-kernels.rst); it is
 * never cleared. Had one been built in, it was there when we began. */
bool drivers::outside_code()
{
    constexpr unsigned long kOutOfTree = 1ul << 12;
    if (outside_.load(std::memory_order_relaxed))
        return true;
    std::array<char, 32> text{};
    bool seen = pread(taint_, text.data(), text.size() - 1, 0) > 0;
    if (seen && !(std::strtoul(text.data(), nullptr, 10) & kOutOfTree))
        return false;
    outside_ = true;
    return true;
}

/* A folder without folders in it has two links. To see that takes a quarter of the time
 * of a look along the path. */
bool drivers::nvidia_loaded() const
{
    constexpr nlink_t kNoneInside = 2;
    struct stat found;
    if (fstat(folder_, &found) == 0 && found.st_nlink == kNoneInside)
        return false;
    return stat(kernel.nvidia_driver, &found) == 0;
}

/** Does /proc/misc name one of these? Drivers are in it from being loaded:
 *  " 196 vfio", "  58 knem". Perhaps, if it cannot be read. */
bool drivers::listed(std::string_view name, std::string_view other) const
{
    std::array<char, 4096> text;
    ssize_t n = pread(misc_, text.data(), text.size(), 0);
    if (n <= 0 || static_cast<std::size_t>(n) == text.size())
        return true;
    std::string_view list(text.data(), static_cast<std::size_t>(n));
    auto names = [&](std::string_view wanted) {
        for (std::size_t at = 0; (at = list.find(wanted, at)) != list.npos; at += wanted.size())
            if (at > 0 && list[at - 1] == ' ' && list.substr(at + wanted.size()).starts_with('\n'))
                return true;
        return false;
    };
    return names(name) || (!other.empty() && names(other));
}

/* What cannot be seen may be held. */
hold drivers::ask(bool locked)
{
    bool seen = look_again_if_libraries_changed();
    if (seen && known_ == hold::none && may_hold(locked)) {
        std::lock_guard one_at_a_time(looking_);
        seen = look_at_files();
    }
    return seen ? known_.load() : std::max(known_.load(), hold::pin);
}

hold drivers::ask_cheaply()
{
    (void)look_again_if_libraries_changed();
    return known_;
}

/* Clients of these drivers come as libraries, as a rule: CUDA's, and UCX's for KNEM.
 * Return: could be looked? */
bool drivers::look_again_if_libraries_changed()
{
    unsigned long long now = library_loads();
    if (loads_.load(std::memory_order_acquire) == now)
        return true;
    std::lock_guard one_at_a_time(looking_);
    if (loads_.load(std::memory_order_relaxed) == now)
        return true;
    bool seen = look_at_mappings() && look_at_files();
    if (seen)
        loads_.store(now, std::memory_order_release);
    return seen;
}

bool drivers::look_at_mappings()
{
    return for_each_line("/proc/self/maps", [&](std::string_view line) {
               std::size_t name = line.find('/');
               if (name != line.npos)
                   found(hold_of_mapping(line.substr(name)), line.substr(name));
               return true;
           }) == 0;
}

bool drivers::look_at_files()
{
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool listed =
        folder >= 0 && for_each_descriptor(folder, [&](int fd, const char *name) {
            struct stat file;
            if (fstat(fd, &file) == -1 || !S_ISCHR(file.st_mode))
                return;
            std::array<char, PATH_MAX> path;
            ssize_t n = readlinkat(folder, name, path.data(), path.size());
            std::string_view text(path.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
            found(hold_of_file(text, file.st_rdev), text);
        });
    if (folder >= 0)
        close(folder);
    return listed;
}

void drivers::found(hold how, std::string_view what)
{
    if (how <= known_.load(std::memory_order_relaxed))
        return;
    std::lock_guard lock(mutex_);
    if (how <= known_)
        return;
    known_ = how;
    culprit_ = {};
    what.copy(culprit_.data(), culprit_.size() - 1);
}

std::array<char, 128> drivers::culprit() const
{
    std::lock_guard lock(mutex_);
    return culprit_;
}

} // namespace zc
