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
        places_.clear(); /* some may be protected that it has not told of */
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
        std::unique_ptr<chunk> &places = places_[at / kChunk];
        if (!places) {
            places = std::make_unique<chunk>();
            places->fill(kNotProtected);
        }
        for (; at < end; at += kPage)
            (*places)[at % kChunk / kPage] = kProtected;
    }
}

void unchanged_pages::note(std::uint64_t address, std::uint64_t place)
{
    const auto places = places_.find(address / kChunk);
    if (places == places_.end())
        return;
    std::uint64_t &now = (*places->second)[address % kChunk / kPage];
    if (now != kNotProtected)
        now = place;
}

std::vector<std::optional<std::uint64_t>> unchanged_pages::find(const page_range &where) const
{
    std::vector<std::optional<std::uint64_t>> found((where.end - where.begin) / kPage);
    for (const page_range &each : tracker_.unwritten(where)) {
        for (std::uint64_t at = each.begin; at < each.end; at += kPage) {
            const auto places = places_.find(at / kChunk);
            const std::uint64_t place =
                places == places_.end() ? kNotProtected : (*places->second)[at % kChunk / kPage];
            if (place < kProtected)
                found[(at - where.begin) / kPage] = place;
        }
    }
    return found;
}

} // namespace zc::holder
