/* SPDX-License-Identifier: BSD-3-Clause */
#include "unchanged_pages.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "direct_writes.h"
#include "error.h"
#include "stopped_process.h"

namespace zc::holder {
namespace {

/** Of a process: vm.max_map_count. */
std::size_t most_mappings()
{
    std::ifstream file("/proc/sys/vm/max_map_count");
    std::size_t most = 0;
    file >> most;
    return most;
}

std::size_t number_of_mappings(pid_t pid)
{
    std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
    const auto lines = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
    return static_cast<std::size_t>(lines);
}

} // namespace

unchanged_pages::unchanged_pages(pid_t pid, descriptor userfault)
    : pid_(pid), tracker_(pid, std::move(userfault))
{
    write_tracker::check_kernel();
}

bool unchanged_pages::protect_while_stopped()
{
    const std::string writer = direct_writer(pid_);
    if (!writer.empty())
        throw error(EBUSY, "it has " + writer);
    try {
        return tracker_.protect([&](const page_range &where) { arm(where); },
                                std::chrono::steady_clock::now() + kLongest);
    } catch (...) {
        chunks_.clear(); /* some may be protected that it has not told of */
        throw;
    }
}

std::string unchanged_pages::protect(const std::vector<page_range> &mappings)
{
    try {
        /* One that is tracked merges with no other, so there may be twice as many. */
        const std::size_t count = number_of_mappings(pid_);
        if (count > most_mappings() / 3)
            return "it has " + std::to_string(count) + " mappings";
        tracker_.follow(mappings);
        bool all = false;
        while_stopped(pid_, [&] { all = protect_while_stopped(); });
        if (!all)
            return "it has too much memory for " + std::to_string(kLongest.count()) + " ms";
    } catch (const std::exception &problem) {
        return reason_of(problem);
    }
    return {};
}

void unchanged_pages::arm(const page_range &where)
{
    for (std::uint64_t at = where.begin; at < where.end;) {
        const std::uint64_t end = std::min(where.end, (at / kChunk + 1) * kChunk);
        chunk &of = chunks_[at / kChunk];
        for (; at < end; at += kPage) {
            of.protected_once.set(at % kChunk / kPage);
            of.read.reset(at % kChunk / kPage);
        }
    }
}

void unchanged_pages::note(std::uint64_t address)
{
    const auto of = chunks_.find(address / kChunk);
    const std::size_t page = address % kChunk / kPage;
    if (of != chunks_.end() && of->second.protected_once[page])
        of->second.read.set(page);
}

std::vector<page_range> unchanged_pages::changed(const page_range &where) const
{
    std::vector<page_range> found;
    std::uint64_t at = where.begin;
    const auto changed_until = [&](std::uint64_t end) {
        if (at < end)
            append(found, {at, end});
    };
    for (const page_range &each : tracker_.unwritten(where)) {
        changed_until(each.begin);
        for (at = each.begin; at < each.end;) {
            const std::uint64_t end = std::min(each.end, (at / kChunk + 1) * kChunk);
            const auto of = chunks_.find(at / kChunk);
            for (; at < end; at += kPage) {
                if (of == chunks_.end() || !of->second.read[at % kChunk / kPage])
                    append(found, {at, at + kPage});
            }
        }
    }
    changed_until(where.end);
    return found;
}

} // namespace zc::holder
