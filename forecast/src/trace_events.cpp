/* SPDX-License-Identifier: BSD-3-Clause */
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>

#include "forecast.h"

namespace zc::forecast {

namespace {

using json = nlohmann::ordered_json;

/* Rows of a rank. */
constexpr int kCalls = 0;
constexpr int kHeld = 1;

constexpr std::array<const char *, ZCT_NR_FUNCTIONS> kFunctions = {
    "MPI_Init", "MPI_Finalize", "send",  "receive",   "send and receive",
    "wait",     "test",         "probe", "collective"};

/** Writes the events one by one: a run has too many to hold their JSON in memory. */
class event_writer {
  public:
    explicit event_writer(std::ostream &out) : out_(out) { out_ << "{\"traceEvents\":["; }
    ~event_writer() { out_ << "\n],\"displayTimeUnit\":\"ms\"}\n"; }
    event_writer(const event_writer &) = delete;
    event_writer &operator=(const event_writer &) = delete;

    void write(const json &event)
    {
        out_ << (first_ ? "\n" : ",\n")
             << event.dump(-1, ' ', false, json::error_handler_t::replace);
        first_ = false;
    }

  private:
    std::ostream &out_;
    bool first_ = true;
};

double us(std::int64_t ns)
{
    return static_cast<double>(ns) / 1e3;
}

void write_rank(event_writer &out, const zct::rank_trace &rank, std::size_t place,
                const site_names &names)
{
    out.write({{"ph", "M"},
               {"name", "process_name"},
               {"pid", rank.rank},
               {"args", {{"name", "rank " + std::to_string(rank.rank) + " on " + rank.host}}}});
    for (const auto &[row, name] : {std::pair(kCalls, "calls"), std::pair(kHeld, "held sender")})
        out.write({{"ph", "M"},
                   {"name", "thread_name"},
                   {"pid", rank.rank},
                   {"tid", row},
                   {"args", {{"name", name}}}});
    for (const zct::call &c : rank.calls)
        out.write({{"ph", "X"},
                   {"name", kFunctions[c.function]},
                   {"cat", "call"},
                   {"pid", rank.rank},
                   {"tid", kCalls},
                   {"ts", us(c.begin_ns)},
                   {"dur", us(c.end_ns - c.begin_ns)},
                   {"args", {{"site", names(place, c.site)}}}});
}

/** A message that came before its receive: an arrow, and how long its sender was held. */
void write_late(event_writer &out, const zct::run &run, const message &m, std::size_t number,
                const site_names &names)
{
    const std::int32_t sender = run.ranks[m.send.rank].rank;
    const std::int32_t receiver = run.ranks[m.receive.rank].rank;
    if (const std::int64_t held = m.held_ns())
        out.write({{"ph", "X"},
                   {"name", "held by rank " + std::to_string(receiver)},
                   {"cat", "late receiver"},
                   {"pid", sender},
                   {"tid", kHeld},
                   {"ts", us(m.send.waiting_ns)},
                   {"dur", us(held)},
                   {"args",
                    {{"bytes", m.bytes},
                     {"sent", names(m.send.rank, m.send.site)},
                     {"received", names(m.receive.rank, m.receive.site)}}}});
    out.write({{"ph", "s"},
               {"name", "late receiver"},
               {"cat", "late receiver"},
               {"id", number},
               {"pid", sender},
               {"tid", kCalls},
               {"ts", us(m.send.posted_ns)}});
    out.write({{"ph", "f"},
               {"bp", "e"},
               {"name", "late receiver"},
               {"cat", "late receiver"},
               {"id", number},
               {"pid", receiver},
               {"tid", kCalls},
               {"ts", us(m.receive.done_ns)}});
}

} // namespace

void write_trace_events(std::ostream &out, const zct::run &run,
                        const std::vector<message> &messages, const site_names &names)
{
    event_writer events(out);
    for (std::size_t i = 0; i < run.ranks.size(); i++)
        write_rank(events, run.ranks[i], i, names);
    for (std::size_t m = 0; m < messages.size(); m++)
        if (messages[m].unexpected() && !messages[m].surely_eager())
            write_late(events, run, messages[m], m, names);
}

} // namespace zc::forecast
