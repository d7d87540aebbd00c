/* SPDX-License-Identifier: BSD-3-Clause */
#include "receive_trace.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "csv_trace.h"
#include "zct_trace.h"

namespace fs = std::filesystem;

namespace zc::report {

/** Positions in @receives in the order of the member @key. */
template <class Key>
static std::vector<size_t> sorted_by(const std::vector<traced_receive> &receives, Key key)
{
    std::vector<size_t> order(receives.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return receives[a].*key < receives[b].*key; });
    return order;
}

std::vector<size_t> trace::arrival_order() const
{
    return sorted_by(receives, &traced_receive::arrival);
}

void number_arrivals(std::vector<traced_receive> &receives)
{
    uint64_t arrival = 0;
    for (size_t at : sorted_by(receives, &traced_receive::sent))
        receives[at].arrival = arrival++;
}

static void each_in(const fs::path &folder, const std::function<void(trace)> &see, bool descend)
{
    if (is_zct_trace(folder))
        each_zct_trace(folder, see);
    std::vector<fs::path> entries;
    for (const auto &entry : fs::directory_iterator(folder))
        entries.push_back(entry.path());
    std::sort(entries.begin(), entries.end());

    for (const fs::path &entry : entries) {
        if (is_csv_trace(entry))
            see(load_csv_trace(entry));
        else if (descend && fs::is_directory(entry))
            each_in(entry, see, false);
    }
}

void each_trace(const std::string &path, const std::function<void(trace)> &see)
{
    bool found = false;
    const auto see_one = [&](trace one) {
        found = true;
        see(std::move(one));
    };
    try {
        if (!fs::exists(path))
            throw trace_error(path + ": no such file or folder");
        if (fs::is_directory(path))
            each_in(path, see_one, true);
        else if (is_zct_trace(path))
            each_zct_trace(path, see_one);
        else
            see_one(load_csv_trace(path));
    } catch (const fs::filesystem_error &error) {
        throw trace_error(path + ": " + error.code().message());
    }
    if (!found)
        throw trace_error(path + ": no r<rank>.csv.gz or r<rank>.zct here");
}

std::vector<trace> load_traces(const std::string &path)
{
    std::vector<trace> traces;
    each_trace(path, [&](trace one) { traces.push_back(std::move(one)); });
    std::stable_sort(traces.begin(), traces.end(), [](const trace &a, const trace &b) {
        return a.run != b.run ? a.run < b.run : a.rank < b.rank;
    });
    return traces;
}

} // namespace zc::report
