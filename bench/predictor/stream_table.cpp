/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream_table.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "periodicity.h"

using zc::predict::periodicity;
using zc::report::traced_receive;

namespace {

constexpr uint32_t kWindow = 256; /* the paper's history */

constexpr printed_row kTable1[] = {
    {"bt", 4, 2425, 7, 4, 18},    {"bt", 9, 3630, 7, 3, 12},    {"bt", 16, 4835, 7, 3, 24},
    {"bt", 25, 6034, 7, 5, 30},   {"cg", 4, 1679, 2, 2, 4},     {"cg", 8, 2942, 3, 2, 7},
    {"cg", 16, 2942, 3, 2, 7},    {"cg", 32, 4204, 3, 2, 10},   {"ft", 4, 998, 6, 3, 12},
    {"ft", 8, 70, 8, 1, 8},       {"ft", 16, 8992, 6, 7, 24},   {"ft", 32, 262, 32, 32, 32},
    {"is", 4, 100, 9, 6, 9},      {"is", 8, 188, 17, 9, 17},    {"is", 16, 364, 33, 17, 33},
    {"is", 32, 716, 65, 34, 65},  {"lu", 4, 31490, 2, 2, 126},  {"lu", 8, 31492, 2, 4, 126},
    {"lu", 16, 31492, 2, 2, 126}, {"lu", 32, 47229, 2, 4, 126}, {"sp", 4, 4823, 6, 3, 12},
    {"sp", 9, 7226, 6, 6, 18},    {"sp", 16, 9000, 6, 7, 24},   {"sp", 25, 12000, 6, 12, 30},
};

/** Different addresses and sizes among the receives from @begin to before @end. */
std::pair<size_t, size_t> different(const std::vector<traced_receive> &receives, size_t begin,
                                    size_t end)
{
    std::set<uint64_t> addresses;
    std::set<uint64_t> sizes;
    for (size_t i = begin; i < end; i++) {
        addresses.insert(receives[i].receive.addr);
        sizes.insert(receives[i].receive.envelope.bytes);
    }
    return {addresses.size(), sizes.size()};
}

std::vector<pattern> patterns(const std::vector<traced_receive> &receives, uint32_t least)
{
    periodicity detector(kWindow, least);
    struct held {
        size_t messages = 0;
        size_t found = 0; /* position behind its first two rounds */
    };
    std::map<uint32_t, held> periods;
    for (size_t i = 0; i < receives.size(); i++) {
        detector.learn(receives[i].receive);
        held &now = periods[detector.period()];
        if (now.messages++ == 0)
            now.found = i + 1;
    }
    std::vector<pattern> out;
    for (const auto &[period, held] : periods) {
        if (period == 0)
            continue;
        const auto [addresses, sizes] = different(receives, held.found - period, held.found);
        out.push_back({period, held.messages, addresses, sizes});
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const pattern &a, const pattern &b) { return a.messages > b.messages; });
    return out;
}

} // namespace

stream_row describe_stream(const recorded_run &run)
{
    const auto &receives = run.trace.receives;
    const auto [addresses, sizes] = different(receives, 0, receives.size());
    const auto large = std::count_if(receives.begin(), receives.end(),
                                     [](const traced_receive &r) { return r.large(); });
    return {receives.size(), static_cast<size_t>(large), addresses,
            sizes,           patterns(receives, 1),      patterns(receives, kWindow)};
}

std::optional<printed_row> printed(const recorded_run &run)
{
    const auto found =
        std::find_if(std::begin(kTable1), std::end(kTable1), [&](const printed_row &row) {
            return run.problem == 'A' && run.program == row.program &&
                   run.processes == row.processes;
        });
    if (found == std::end(kTable1))
        return {};
    return *found;
}
