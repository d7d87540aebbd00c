/* SPDX-License-Identifier: BSD-3-Clause */
#include "pages.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zc::agent {
namespace {

using nlohmann::json;

constexpr std::uint32_t kShownGroup = 16;
constexpr std::size_t kShownFlows = 256;
constexpr std::size_t kShownPeers = 8;
constexpr const char *kPhaseNames[] = {"negotiation", "checkpoint", "spawn",
                                       "transfer",    "restore",    "rebuild"};

const char *state_name(member_state s)
{
    switch (s) {
    case member_state::alive:
        return "alive";
    case member_state::suspect:
        return "suspect";
    case member_state::dead:
        return "dead";
    case member_state::left:
        break;
    }
    return "left";
}

const char *mode_name(mode m)
{
    return m == mode::move ? "move" : m == mode::observe ? "observe" : "off";
}

/** JSON has no infinity: what is unbounded is not there. */
json finite(double v)
{
    return std::isfinite(v) ? json(v) : json();
}

json to_json(const load_digest &d)
{
    return {{"cpus", d.cpus},        {"demand", d.demand}, {"speed", d.speed},
            {"ranks", d.ranks},      {"room", d.room},     {"free_bytes", d.free_bytes},
            {"draining", d.draining}};
}

json to_json(const member &m)
{
    return {{"id", hex(m.id)},
            {"host", m.host},
            {"address", m.address},
            {"state", state_name(m.state)},
            {"load", to_json(m.load)}};
}

json nodes_page(const agent &a, const outward &o)
{
    json nodes = json::array();
    json self = to_json(a.network().self());
    self["self"] = true;
    const load_digest mine = a.here().digest();
    self["load"] = to_json(mine);
    self["relative_speed"] = 1;
    self["shape"] = {{"packages", o.shape.packages},
                     {"numa_nodes", o.shape.numa_nodes},
                     {"cores", o.shape.cores},
                     {"threads", o.shape.threads},
                     {"memory_bytes", o.shape.memory_bytes}};
    nodes.push_back(std::move(self));
    for (const peer &p : a.network().peers()) {
        json n = to_json(p.node);
        n["self"] = false;
        n["relative_speed"] = beside(mine, p.node.load).speed;
        n["rtt_us"] = p.rtt_us;
        n["bytes_per_s"] = p.bytes_per_us * 1e6;
        n["heard_s_ago"] = to_seconds(o.now - p.heard);
        nodes.push_back(std::move(n));
    }
    std::sort(nodes.begin(), nodes.end(), [](const json &x, const json &y) {
        return x["host"].get_ref<const std::string &>() < y["host"].get_ref<const std::string &>();
    });
    return {{"nodes", nodes}};
}

json ranks_page(const agent &a, const outward &o)
{
    json ranks = json::array();
    for (const auto &[key, r] : a.here().ranks()) {
        const rank_profile &p = r.profile;
        std::vector<flow> flows = p.flows;
        std::sort(flows.begin(), flows.end(),
                  [](const flow &x, const flow &y) { return x.bytes_per_s > y.bytes_per_s; });
        json peers = json::array();
        for (std::size_t i = 0; i < std::min(flows.size(), kShownPeers); i++)
            peers.push_back({{"rank", flows[i].peer},
                             {"bytes_per_s", flows[i].bytes_per_s},
                             {"messages_per_s", flows[i].messages_per_s}});
        auto reading = o.ranks.find(key);
        const job_view *job = a.here().job(key.job);
        json one = {{"job", hex(key.job)},
                    {"job_name", job != nullptr ? job->name : ""},
                    {"rank", key.rank},
                    {"host", a.network().self().host},
                    {"epoch", p.epoch},
                    {"iterations", p.iterations},
                    {"iterations_per_s", p.iterations_per_s},
                    {"mpi_share", p.mpi_share},
                    {"work_s", p.work_s > 0 ? json(p.work_s) : json()},
                    {"image_bytes", p.image_bytes},
                    {"movable", p.movable},
                    {"way", p.transparent ? "transparent" : "zcm"},
                    {"leaving", r.leaving},
                    {"here_s", to_seconds(o.now - r.arrived)},
                    {"moves", r.moves},
                    {"peers", peers}};
        if (p.total_iterations > 0)
            one["total_iterations"] = p.total_iterations;
        if (p.transparent) {
            one["idle"] = p.idle;
            one["processors"] = p.processors;
            one["refusals"] = 0;
            if (const auto *refused = a.moves().refused().of(key)) {
                one["refusals"] = refused->times;
                one["refused"] = refused->why;
                one["asked_again_s"] = std::max(0.0, to_seconds(refused->until - o.now));
            }
        }
        if (r.came_from != kNoNode)
            one["came_from"] = hex(r.came_from);
        if (reading != o.ranks.end()) {
            one["pid"] = reading->second.pid;
            one["messages_known"] = reading->second.tells;
        }
        ranks.push_back(std::move(one));
    }
    return {{"ranks", ranks}};
}

json groups_page(const agent &a)
{
    json jobs = json::array();
    for (const auto &[id, job] : a.here().jobs()) {
        json groups = json::array();
        for (const auto &[key, r] : a.here().ranks()) {
            if (key.job != id)
                continue;
            std::vector<rank_id> group = a.groups().around(id, key.rank, kShownGroup);
            group.resize(std::min<std::size_t>(group.size(), kShownGroup));
            groups.push_back({{"rank", key.rank}, {"group", group}});
        }
        json flows = json::array();
        std::vector<zcp_flow_t> expected = a.groups().expected(id);
        for (std::size_t i = 0; i < std::min(expected.size(), kShownFlows); i++)
            flows.push_back({{"src", expected[i].src},
                             {"dst", expected[i].dst},
                             {"bytes", expected[i].bytes},
                             {"confidence", expected[i].confidence}});
        json placement = json::array();
        for (node_id where : job.placement)
            placement.push_back(where == kNoNode ? json() : json(hex(where)));
        auto none = a.without_groups().find(id);
        jobs.push_back(
            {{"job", hex(id)},
             {"job_name", job.name},
             {"epoch", job.epoch},
             {"busy", job.busy},
             {"placement", placement},
             {"no_groups",
              none == a.without_groups().end() ? json() : json(std::strerror(none->second))},
             {"groups", groups},
             {"flows", flows}});
    }
    return {{"grouping", a.options().grouping}, {"jobs", jobs}};
}

json to_json(const record &r, double wall_s)
{
    json phases;
    for (std::size_t i = 0; i < kPhases; i++)
        phases[kPhaseNames[i]] = r.phase_ms[i];
    return {{"id", r.id},
            {"time", wall_s},
            {"what", r.what},
            {"txn",
             r.txn.decider == kNoNode ? "" : fmt::format("{:x}-{:x}", r.txn.decider, r.txn.number)},
            {"job", hex(r.job)},
            {"ranks", r.ranks},
            {"from", hex(r.from)},
            {"to", hex(r.to)},
            {"to_host", r.to_host},
            {"why", r.why},
            {"before", finite(r.before)},
            {"after", finite(r.after)},
            {"gain_s", finite(r.gain_s)},
            {"cost_s", finite(r.cost_s)},
            {"bytes", r.bytes},
            {"times", r.times},
            {"phases_ms", phases}};
}

json history_page(const agent &a, const outward &o)
{
    json records = json::array();
    for (const record &r : a.decisions().records())
        records.push_back(to_json(r, o.wall_s - to_seconds(o.now - r.time)));
    return {{"host", a.network().self().host}, {"records", records}};
}

json status_page(const agent &a, const admission &door, const outward &o)
{
    json refused;
    for (std::size_t i = 1; i < kFlaws; i++)
        refused[std::string(flaw_name(static_cast<flaw>(i)))] = door.count(static_cast<flaw>(i));
    return {{"host", a.network().self().host},
            {"id", hex(a.network().self().id)},
            {"mode", mode_name(a.options().act)},
            {"policy", a.options().policy},
            {"grouping", a.options().grouping},
            {"busy_with", a.moves().busy_with()},
            {"transparent",
             {{"policy", o.transparent},
              {"refusals", a.moves().refused().counted()},
              {"unread", o.held_unread}}},
            {"traffic_of_movers",
             {{"told", a.traffic_of_movers().told},
              {"learned", a.traffic_of_movers().learned},
              {"refused", a.traffic_of_movers().refused}}},
            {"traffic_of_jobs",
             {{"told", a.traffic_of_jobs().told},
              {"untold", a.traffic_of_jobs().untold},
              {"learned", a.traffic_of_jobs().learned},
              {"refused", a.traffic_of_jobs().refused},
              {"late", a.traffic_of_jobs().late},
              {"no_room", a.traffic_of_jobs().no_room}}},
            {"overloaded_s", to_seconds(a.here().overloaded_for(o.now))},
            {"messages_in", door.count(flaw::none)},
            {"messages_out", o.sent},
            {"messages_dropped", o.dropped},
            {"messages_refused", refused},
            {"strangers", o.strangers},
            {"profiles_refused", o.profiles_refused},
            {"ranks_untimed", o.ranks_untimed},
            {"rank_messages_missed", o.events_missed}};
}

/** Prometheus text, version 0.0.4. */
class metrics {
  public:
    void family(const char *name, const char *type, const char *help)
    {
        text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
        name_ = name;
    }
    void value(double v, const std::string &labels = "")
    {
        text_ += fmt::format("{}{}{}{} {}\n", name_, labels.empty() ? "" : "{", labels,
                             labels.empty() ? "" : "}", v);
    }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
    std::string name_;
};

std::string quoted(const std::string &text)
{
    std::string out;
    for (char c : text) {
        if (c == '\\' || c == '"')
            out += '\\';
        out += c;
    }
    return out;
}

std::string metrics_page(const agent &a, const admission &door, const outward &o)
{
    metrics m;
    load_digest d = a.here().digest();
    m.family("zcmd_cpus", "gauge", "Processors this node may use.");
    m.value(d.cpus);
    m.family("zcmd_demand", "gauge", "Runnable threads, and ranks that are to come.");
    m.value(d.demand);
    m.family("zcmd_ranks", "gauge", "Ranks on this node.");
    m.value(a.here().ranks_here());
    m.family("zcmd_room", "gauge", "Ranks this node would still take.");
    m.value(d.room);
    m.family("zcmd_cpu_pressure_percent", "gauge", "PSI, some, 10 s average.");
    m.value(o.kernel.cpu_pressure.value_or(0), "resource=\"cpu\"");
    m.value(o.kernel.memory_pressure.value_or(0), "resource=\"memory\"");
    m.family("zcmd_steal_ratio", "gauge", "Part of the time that the hypervisor took.");
    m.value(o.kernel.steal);
    m.family("zcmd_peers", "gauge", "Agents known, by state.");
    std::map<std::string, int> states;
    for (const peer &p : a.network().peers())
        states[state_name(p.node.state)]++;
    for (const char *s : {"alive", "suspect", "dead", "left"})
        m.value(states[s], fmt::format("state=\"{}\"", s));
    m.family("zcmd_peer_rtt_seconds", "gauge", "Round trip to a peer.");
    for (const peer &p : a.network().peers()) {
        if (p.node.state == member_state::alive && p.rtt_us > 0)
            m.value(p.rtt_us / 1e6, fmt::format("host=\"{}\"", quoted(p.node.host)));
    }
    m.family("zcmd_peer_bytes_per_second", "gauge", "Measured bandwidth to a peer.");
    for (const peer &p : a.network().peers()) {
        if (p.node.state == member_state::alive && p.bytes_per_us > 0)
            m.value(p.bytes_per_us * 1e6, fmt::format("host=\"{}\"", quoted(p.node.host)));
    }
    m.family("zcmd_messages_total", "counter",
             "Messages of agents, in and out, and what became of them.");
    m.value(static_cast<double>(door.count(flaw::none)), "direction=\"in\"");
    m.value(static_cast<double>(o.sent), "direction=\"out\"");
    m.family("zcmd_messages_refused_total", "counter", "Messages refused, by cause.");
    for (std::size_t i = 1; i < kFlaws; i++)
        m.value(static_cast<double>(door.count(static_cast<flaw>(i))),
                fmt::format("cause=\"{}\"", flaw_name(static_cast<flaw>(i))));
    m.family("zcmd_strangers_total", "counter", "Connections turned away for want of our key.");
    m.value(static_cast<double>(o.strangers));
    m.family("zcmd_decisions", "gauge", "Decisions in memory, by kind.");
    std::map<std::string, std::uint64_t> kinds;
    for (const record &r : a.decisions().records())
        kinds[r.what] += r.times;
    for (const auto &[kind, count] : kinds)
        m.value(static_cast<double>(count), fmt::format("what=\"{}\"", kind));
    m.family("zcmd_rank_iterations_per_second", "gauge", "Progress of a rank on this node.");
    for (const auto &[key, r] : a.here().ranks())
        m.value(r.profile.iterations_per_s,
                fmt::format("job=\"{}\",rank=\"{}\"", hex(key.job), key.rank));
    m.family("zcmd_rank_mpi_ratio", "gauge", "Part of its time that a rank spends in MPI.");
    for (const auto &[key, r] : a.here().ranks())
        m.value(r.profile.mpi_share, fmt::format("job=\"{}\",rank=\"{}\"", hex(key.job), key.rank));
    m.family("zcmd_rank_work_seconds", "gauge",
             "Time on a processor, outside MPI, of an iteration of a rank.");
    for (const auto &[key, r] : a.here().ranks()) {
        if (r.profile.work_s > 0)
            m.value(r.profile.work_s,
                    fmt::format("job=\"{}\",rank=\"{}\"", hex(key.job), key.rank));
    }
    m.family("zcmd_jobs_without_groups", "gauge",
             "Jobs whose ranks move one by one, since their groups cannot be learned.");
    m.value(static_cast<double>(a.without_groups().size()));
    m.family("zcmd_transparent_refusals_total", "counter",
             "Moves of ranks below zc-hold that were refused.");
    m.value(static_cast<double>(a.moves().refused().counted()));
    m.family("zcmd_ranks_untimed", "gauge", "Ranks whose processor time is not to be read.");
    m.value(static_cast<double>(o.ranks_untimed));
    m.family("zcmd_rank_messages_missed_total", "counter",
             "Messages of ranks that were overwritten before the agent had read them.");
    m.value(static_cast<double>(o.events_missed));
    return m.take();
}

} // namespace

std::string hex(std::uint64_t id)
{
    return fmt::format("{:016x}", id);
}

std::map<std::string, std::string> make_pages(const agent &a, const admission &door,
                                              const outward &o)
{
    auto text = [](const json &j) {
        return j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    };
    return {{"/nodes", text(nodes_page(a, o))},         {"/ranks", text(ranks_page(a, o))},
            {"/groups", text(groups_page(a))},          {"/history", text(history_page(a, o))},
            {"/status", text(status_page(a, door, o))}, {"/metrics", metrics_page(a, door, o)}};
}

std::string record_line(const agent &a, const outward &o)
{
    json ranks = json::array();
    for (const auto &[key, r] : a.here().ranks())
        ranks.push_back({{"job", hex(key.job)},
                         {"rank", key.rank},
                         {"rate", r.profile.iterations_per_s},
                         {"work_s", r.profile.work_s},
                         {"iterations", r.profile.iterations}});
    json line = {{"kind", "sample"},
                 {"time", o.wall_s},
                 {"host", a.network().self().host},
                 {"load", to_json(a.here().digest())},
                 {"ranks", ranks}};
    if (!a.here().jobs().empty())
        line["groups"] = groups_page(a)["jobs"];
    return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string record_line(const record &r, double wall_s, const std::string &host)
{
    json line = to_json(r, wall_s);
    line["kind"] = "decision";
    line["host"] = host;
    return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace zc::agent
