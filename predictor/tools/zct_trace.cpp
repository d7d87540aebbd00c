/* SPDX-License-Identifier: BSD-3-Clause */
#include "zct_trace.h"

#include <fmt/format.h>

#include "zct/trace.h"

namespace fs = std::filesystem;

namespace zc::report {

static trace trace_of(zct::run_in_turn &run, std::size_t place)
{
    const std::string &name = run.about().name;
    const zct::rank_trace &rank = run.about().ranks[place];
    trace trace{name, rank.rank, {}, {}};
    run.each_receive(place, [&](const zct::receive &r) {
        /* A sender that is not known counts as late: its message is no landing query. */
        trace.receives.push_back({{{r.comm, r.source, r.tag, r.bytes}, r.addr},
                                  r.posted_ns,
                                  r.sent_known ? r.sent_ns : r.done_ns,
                                  r.arrival_order});
    });
    if (!rank.complete)
        trace.note = fmt::format("{}: rank {} was not recorded to its end", name, rank.rank);
    return trace;
}

bool is_zct_trace(const fs::path &path)
{
    return fs::is_directory(path) ? zct::is_trace_folder(path) : zct::is_trace_file(path);
}

void each_zct_trace(const fs::path &path, const std::function<void(trace)> &see)
{
    try {
        std::vector<std::string> unreadable;
        zct::run_in_turn run(path, &unreadable);
        for (std::size_t i = 0; i < run.about().ranks.size(); i++) {
            trace trace = trace_of(run, i);
            for (const std::string &why : unreadable) /* the reader has to know, of whichever */
                trace.note +=
                    fmt::format("{}{}; the file is left out", trace.note.empty() ? "" : "; ", why);
            unreadable.clear();
            see(std::move(trace));
        }
    } catch (const zct::error &error) {
        throw trace_error(error.what());
    }
}

} // namespace zc::report
