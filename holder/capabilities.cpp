/* SPDX-License-Identifier: BSD-3-Clause */
#include "capabilities.h"

#include <memory>
#include <sys/capability.h>
#include <type_traits>
#include <unistd.h>

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

bool has_capabilities_for_criu()
{
    const capabilities all = own();
    return has(all, CAP_CHECKPOINT_RESTORE, CAP_EFFECTIVE) &&
           has(all, CAP_SYS_PTRACE, CAP_EFFECTIVE);
}

bool has_capabilities_for_time_namespaces()
{
    const capabilities all = own();
    return has(all, CAP_SYS_ADMIN, CAP_EFFECTIVE) && has(all, CAP_SYS_TIME, CAP_EFFECTIVE);
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
