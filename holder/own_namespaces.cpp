/* SPDX-License-Identifier: BSD-3-Clause */
#include "own_namespaces.h"

#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <type_traits>
#include <unistd.h>

#include "descriptor.h"
#include "error.h"

namespace zc::holder {
namespace {

using capabilities = std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void *)>;

capabilities own()
{
    return {cap_get_proc(), cap_free};
}

bool has(const capabilities &all, cap_value_t which, cap_flag_t set)
{
    cap_flag_value_t value = CAP_CLEAR;
    return all && cap_get_flag(all.get(), which, set, &value) == 0 && value == CAP_SET;
}

void write_map(const char *path, const std::string &text)
{
    const descriptor file{open(path, O_WRONLY | O_CLOEXEC)};
    if (file.fd < 0 || write(file.fd, text.data(), text.size()) < 0)
        throw_errno(errno, std::string("a user namespace: ") + path);
}

std::string same_number(unsigned id)
{
    return std::to_string(id) + " " + std::to_string(id) + " 1";
}

/** Over an execve(2), of a user other than root: root has all in any case. */
template <typename predicate>
void keep_if(predicate is_kept)
{
    const capabilities all = own();
    if (geteuid() == 0 || !all)
        return;
    cap_reset_ambient();
    const auto each_kept = [&](auto act) {
        for (cap_value_t each = 0; each < cap_max_bits(); each++)
            if (is_kept(each) && has(all, each, CAP_PERMITTED))
                act(each);
    };
    each_kept(
        [&](cap_value_t which) { cap_set_flag(all.get(), CAP_INHERITABLE, 1, &which, CAP_SET); });
    /* The kernel lets no other be ambient. */
    if (cap_set_proc(all.get()) == 0)
        each_kept([](cap_value_t which) { cap_set_ambient(which, CAP_SET); });
}

} // namespace

bool needs_user_namespace()
{
    const capabilities all = own();
    return geteuid() != 0 && !(has(all, CAP_CHECKPOINT_RESTORE, CAP_EFFECTIVE) &&
                               has(all, CAP_SYS_PTRACE, CAP_EFFECTIVE));
}

bool may_make_time_namespaces()
{
    const capabilities all = own();
    return has(all, CAP_SYS_ADMIN, CAP_EFFECTIVE) && has(all, CAP_SYS_TIME, CAP_EFFECTIVE);
}

void enter_user_namespace()
{
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(CLONE_NEWUSER) != 0)
        throw_errno(errno, "a user namespace");
    write_map("/proc/self/uid_map", same_number(user));
    /* Without privilege the kernel asks for this: a group may be what keeps its members out. */
    write_map("/proc/self/setgroups", "deny");
    write_map("/proc/self/gid_map", same_number(group));
}

void become_first_of_namespaces()
{
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
        throw_errno(errno, "a PID namespace");
    const pid_t first = fork();
    if (first < 0)
        throw_errno(errno, "fork");
    if (first > 0)
        _exit(0);
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
        throw_errno(errno, "a PID namespace: /proc");
}

void keep_capabilities()
{
    keep_if([](cap_value_t) { return true; });
}

void keep_capabilities_for_criu()
{
    keep_if([](cap_value_t which) {
        return which == CAP_CHECKPOINT_RESTORE || which == CAP_SYS_PTRACE || which == CAP_SETPCAP;
    });
}

} // namespace zc::holder
