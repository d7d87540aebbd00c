/* SPDX-License-Identifier: BSD-3-Clause */
#include "receive_trace.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>

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

static void append(std::vector<trace> &out, std::vector<trace> more)
{
    std::move(more.begin(), more.end(), std::back_inserter(out));
}

static void load_folder(const fs::path &folder, std::vector<trace> &out, bool descend)
{
    if (is_zct_trace(folder))
        append(out, load_zct_traces(folder));
    std::vector<fs::path> entries;
    for (const auto &entry : fs::directory_iterator(folder))
        entries.push_back(entry.path());
    std::sort(entries.begin(), entries.end());

    for (const fs::path &entry : entries) {
        if (is_csv_trace(entry))
            out.push_back(load_csv_trace(entry));
        else if (descend && fs::is_directory(entry))
            load_folder(entry, out, false);
    }
}

std::vector<trace> load_traces(const std::string &path)
{
    std::vector<trace> traces;
    try {
        if (!fs::exists(path))
            throw trace_error(path + ": no such file or folder");
        if (fs::is_directory(path))
            load_folder(path, traces, true);
        else if (is_zct_trace(path))
            append(traces, load_zct_traces(path));
        else
            traces.push_back(load_csv_trace(path));
    } catch (const fs::filesystem_error &error) {
        throw trace_error(path + ": " + error.code().message());
    }
    if (traces.empty())
        throw trace_error(path + ": no r<rank>.csv.gz or r<rank>.zct here");
    std::stable_sort(traces.begin(), traces.end(), [](const trace &a, const trace &b) {
        return a.run != b.run ? a.run < b.run : a.rank < b.rank;
    });
    return traces;
}

} // namespace zc::report
