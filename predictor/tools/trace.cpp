/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "csv_trace.h"

namespace fs = std::filesystem;

namespace zc::report {

std::vector<size_t> trace::arrival_order() const
{
    std::vector<size_t> order(receives.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
        return receives[a].arrival < receives[b].arrival;
    });
    return order;
}

static void load_folder(const fs::path &folder, std::vector<trace> &out, bool descend)
{
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
        if (fs::is_directory(path))
            load_folder(path, traces, true);
        else if (fs::exists(path))
            traces.push_back(load_csv_trace(path));
        else
            throw trace_error(path + ": no such file or folder");
    } catch (const fs::filesystem_error &error) {
        throw trace_error(path + ": " + error.code().message());
    }
    if (traces.empty())
        throw trace_error(path + ": no r<rank>.csv.gz here");
    std::stable_sort(traces.begin(), traces.end(), [](const trace &a, const trace &b) {
        return a.run != b.run ? a.run < b.run : a.rank < b.rank;
    });
    return traces;
}

} // namespace zc::report
