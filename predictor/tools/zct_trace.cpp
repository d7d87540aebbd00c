/* SPDX-License-Identifier: BSD-3-Clause */
#include "zct_trace.h"

#include <fmt/format.h>

#include "zct/trace.h"

namespace fs = std::filesystem;

namespace zc::report {

static trace trace_of(const zct::run &run, const zct::rank_trace &rank)
{
    trace trace{run.name, rank.rank, {}, {}};
    for (const zct::receive &r : rank.receives)
        /* A sender that is not known counts as late: its message is no landing query. */
        trace.receives.push_back({{{r.comm, r.source, r.tag, r.bytes}, r.addr},
                                  r.posted_ns,
                                  r.sent_known ? r.sent_ns : r.done_ns,
                                  r.arrival_order});
    if (!rank.complete)
        trace.note = fmt::format("{}: rank {} was not recorded to its end", run.name, rank.rank);
    return trace;
}

bool is_zct_trace(const fs::path &path)
{
    return fs::is_directory(path) ? zct::is_trace_folder(path) : zct::is_trace_file(path);
}

std::vector<trace> load_zct_traces(const fs::path &path)
{
    try {
        std::vector<std::string> unreadable;
        const zct::run run = zct::load(path, &unreadable);
        std::vector<trace> traces;
        for (const zct::rank_trace &rank : run.ranks)
            traces.push_back(trace_of(run, rank));
        for (const std::string &why : unreadable) /* the reader has to know, of whichever */
            traces.front().note += fmt::format("{}{}; the file is left out",
                                               traces.front().note.empty() ? "" : "; ", why);
        return traces;
    } catch (const zct::error &error) {
        throw trace_error(error.what());
    }
}

} // namespace zc::report
