/* SPDX-License-Identifier: BSD-3-Clause */
#include "refusal.h"

#include <array>

namespace zc {

namespace {

/* What is refused at once, at least. */
constexpr std::size_t kOnePage = kPage;
constexpr std::size_t kHugePage = kHuge;
/* A mapping: what is behind a shorter one is hardly worth another call. */
constexpr std::size_t kMapping = std::size_t{64} << 10;
constexpr std::size_t kAll = SIZE_MAX;

struct refusal {
    zc_reason_t reason;
    std::size_t unit;
};

/* In the order of enum zc_cause. The last is any that we do not know. */
constexpr std::array<refusal, ZC_CAUSE_COUNT + 1> kRefusals = {{
    {ZC_REASON_SYSCALL, kAll}, /* NONE: stopped without a cause */
    {ZC_REASON_SYSCALL, kAll}, /* ALIGNMENT */
    {ZC_REASON_SYSCALL, kAll}, /* OVERLAP */
    {ZC_REASON_UNMAPPED, kMapping},  {ZC_REASON_READ_ONLY, kMapping}, /* ACCESS */
    {ZC_REASON_FILE, kMapping},      {ZC_REASON_SHARED, kMapping},
    {ZC_REASON_HUGETLB, kMapping},   {ZC_REASON_STACK, kMapping}, /* SPECIAL */
    {ZC_REASON_LOCKED, kMapping},    {ZC_REASON_USERFAULTFD, kMapping},
    {ZC_REASON_POLICY, kMapping},    {ZC_REASON_COW, kOnePage},
    {ZC_REASON_PINNED, kOnePage},    {ZC_REASON_PAGE_SIZE, kHugePage},
    {ZC_REASON_NOTIFIER, kAll},      {ZC_REASON_RACED, kOnePage},
    {ZC_REASON_NO_MEMORY, kOnePage}, {ZC_REASON_RACED, kOnePage}, /* INTERRUPTED, each time */
    {ZC_REASON_POISONED, kOnePage},  {ZC_REASON_SYSCALL, kAll},
}};
static_assert(kRefusals[ZC_CAUSE_POISONED].reason == ZC_REASON_POISONED);
static_assert(kRefusals[ZC_CAUSE_PAGE_SIZE].reason == ZC_REASON_PAGE_SIZE);

const refusal &refusal_of(zc_cause cause)
{
    return kRefusals[std::min<std::size_t>(cause, ZC_CAUSE_COUNT)];
}

} // namespace

zc_reason_t refusal_reason(zc_cause cause)
{
    return refusal_of(cause).reason;
}

range refused_part(zc_cause cause, range rest, unsigned again)
{
    std::size_t unit = refusal_of(cause).unit;
    if (unit == kAll)
        return rest;
    /* A huge page ends where the next one begins. */
    addr_t from = unit == kHugePage ? round_down(rest.begin, kHuge) : rest.begin;
    return {rest.begin, std::min(rest.end, from + (unit << std::min(again, 20u)))};
}

} // namespace zc
