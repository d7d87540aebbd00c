/* SPDX-License-Identifier: BSD-3-Clause */
#include "unchanged_pages.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "direct_writes.h"
#include "error.h"
#include "stopped_process.h"

namespace zc::holder {

unchanged_pages::unchanged_pages(pid_t pid, descriptor userfault)
    : pid_(pid), tracker_(pid, std::move(userfault))
{
    write_tracker::check_kernel();
}

std::string unchanged_pages::protect(const std::vector<page_range> &mappings)
{
    try {
        while_stopped(pid_, [&] {
            const std::string writer = direct_writer(pid_);
            if (!writer.empty())
                throw error(EBUSY, "it has " + writer);
            try {
                tracker_.protect(mappings, [&](const page_range &where) { forget(where); });
            } catch (...) {
                places_.clear(); /* some may be protected that it has not told of */
                throw;
            }
        });
    } catch (const std::exception &problem) {
        return reason_of(problem);
    }
    return {};
}

void unchanged_pages::forget(const page_range &where)
{
    for (std::uint64_t at = where.begin; at < where.end;) {
        const std::uint64_t end = std::min(where.end, (at / kChunk + 1) * kChunk);
        if (const auto found = places_.find(at / kChunk); found != places_.end()) {
            for (; at < end; at += kPage)
                (*found->second)[at % kChunk / kPage] = kNowhere;
        }
        at = end;
    }
}

void unchanged_pages::note(std::uint64_t address, std::uint64_t place)
{
    std::unique_ptr<chunk> &places = places_[address / kChunk];
    if (!places) {
        places = std::make_unique<chunk>();
        places->fill(kNowhere);
    }
    (*places)[address % kChunk / kPage] = place;
}

std::vector<std::optional<std::uint64_t>> unchanged_pages::find(const page_range &where) const
{
    std::vector<std::optional<std::uint64_t>> found((where.end - where.begin) / kPage);
    for (const page_range &each : tracker_.unwritten(where)) {
        for (std::uint64_t at = each.begin; at < each.end; at += kPage) {
            const auto places = places_.find(at / kChunk);
            const std::uint64_t place =
                places == places_.end() ? kNowhere : (*places->second)[at % kChunk / kPage];
            if (place != kNowhere)
                found[(at - where.begin) / kPage] = place;
        }
    }
    return found;
}

} // namespace zc::holder
