/* SPDX-License-Identifier: BSD-3-Clause */
#include "zc/zc.h"

#include <array>
#include <cstddef>

namespace {

/* In the order of zc_reason_t and zc_means_t. */
constexpr std::array kReasons = {
    "none",        "small",         "unpredicted", "not_congruent", "unmapped", "shared",
    "file",        "read_only",     "hugetlb",     "stack",         "locked",   "pinned",
    "page_size",   "mapping_limit", "no_means",    "no_memory",     "syscall",  "cow",
    "userfaultfd", "policy",        "notifier",    "raced",         "poisoned", "disabled",
    "device",      "node",
};
static_assert(kReasons.size() == ZC_REASON_COUNT);

constexpr std::array kMeans = {"copy", "mremap", "kmod"};
static_assert(kMeans.size() == ZC_MEANS_COUNT);

} // namespace

extern "C" const char *zc_reason_name(zc_reason_t reason) noexcept
{
    auto at = static_cast<std::size_t>(reason);
    return at < kReasons.size() ? kReasons[at] : "unknown";
}

extern "C" const char *zc_means_name(zc_means_t means) noexcept
{
    auto at = static_cast<std::size_t>(means);
    return at < kMeans.size() ? kMeans[at] : "unknown";
}

extern "C" const char *zc_version(void) noexcept
{
    return ZC_VERSION;
}
