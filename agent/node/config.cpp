/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <unistd.h>

#include <fmt/format.h>
#define TOML_HEADER_ONLY 0
#include <toml++/toml.h>

#include "endpoint.h"
#include "host_name.h"
#include "keys.h"
#include "rank_groups.h"
#include "runtime_directory.h"

namespace zc::agent {
namespace {

/** One setting of zcmd.toml: read into a config, and described in the manual. */
struct knob {
    const char *table;
    const char *key;
    const char *type;
    const char *meaning;
    /* Returns what is wrong, or nothing. */
    std::function<std::string(config &, const toml::node &)> set;
    std::function<std::string(const config &)> show;
};

std::string wanted(const char *what)
{
    return fmt::format("wants {}", what);
}

template <class Get>
knob text(const char *table, const char *key, Get get, const char *meaning)
{
    return {table,
            key,
            "text",
            meaning,
            [get](config &c, const toml::node &n) -> std::string {
                auto v = n.value_exact<std::string>();
                if (!v)
                    return wanted("a text in quotes");
                get(c) = *v;
                return "";
            },
            [get](const config &c) {
                auto copy = c;
                return get(copy).empty() ? std::string("see below") : "\"" + get(copy) + "\"";
            }};
}

template <class Get>
knob choice(const char *table, const char *key, Get get, std::vector<std::string> names,
            const char *meaning)
{
    return {table,
            key,
            "text",
            meaning,
            [get, names](config &c, const toml::node &n) -> std::string {
                auto v = n.value_exact<std::string>();
                if (!v || std::find(names.begin(), names.end(), *v) == names.end())
                    return fmt::format("wants one of {}", fmt::join(names, ", "));
                get(c) = *v;
                return "";
            },
            [get](const config &c) {
                auto copy = c;
                return "\"" + get(copy) + "\"";
            }};
}

/** A choice whose names stand for values of an enumeration. */
template <class Value, class Get>
knob value_of(const char *table, const char *key, Get get,
              std::vector<std::pair<std::string, Value>> values, const char *meaning)
{
    return {table,
            key,
            "text",
            meaning,
            [get, values](config &c, const toml::node &n) -> std::string {
                const auto v = n.value_exact<std::string>();
                std::vector<std::string> names;
                for (const auto &[name, value] : values) {
                    if (v == name) {
                        get(c) = value;
                        return "";
                    }
                    names.push_back(name);
                }
                return fmt::format("wants one of {}", fmt::join(names, ", "));
            },
            [get, values](const config &c) {
                auto copy = c;
                for (const auto &[name, value] : values) {
                    if (value == get(copy))
                        return "\"" + name + "\"";
                }
                return std::string();
            }};
}

/** The number at @n; none if it is another value, or one out of these bounds. */
std::optional<double> number_within(const toml::node &n, double least, double most)
{
    auto v = n.value<double>();
    if (!v || !n.is_number() || !std::isfinite(*v) || *v < least || *v > most)
        return std::nullopt;
    return v;
}

template <class Get>
knob number(const char *table, const char *key, Get get, double least, double most,
            const char *meaning)
{
    return {table,
            key,
            "number",
            meaning,
            [get, least, most](config &c, const toml::node &n) -> std::string {
                auto v = number_within(n, least, most);
                if (!v)
                    return fmt::format("wants a number from {} to {}", least, most);
                using target = std::remove_reference_t<decltype(get(c))>;
                if (std::is_integral_v<target> && *v != std::floor(*v))
                    return fmt::format("wants a whole number from {} to {}", least, most);
                get(c) = static_cast<target>(*v);
                return "";
            },
            [get](const config &c) {
                auto copy = c;
                return fmt::format("{}", get(copy));
            }};
}

template <class Get>
knob flag(const char *table, const char *key, Get get, const char *meaning)
{
    return {table,
            key,
            "true or false",
            meaning,
            [get](config &c, const toml::node &n) -> std::string {
                auto v = n.value_exact<bool>();
                if (!v)
                    return wanted("true or false");
                get(c) = *v;
                return "";
            },
            [get](const config &c) {
                auto copy = c;
                return fmt::format("{}", get(copy));
            }};
}

template <class Get>
knob seconds(const char *table, const char *key, Get get, double least, double most,
             const char *meaning)
{
    return {table,
            key,
            "seconds",
            meaning,
            [get, least, most](config &c, const toml::node &n) -> std::string {
                auto v = number_within(n, least, most);
                if (!v)
                    return fmt::format("wants a number of seconds from {} to {}", least, most);
                get(c) = from_seconds(*v);
                return "";
            },
            [get](const config &c) {
                auto copy = c;
                return fmt::format("{}", to_seconds(get(copy)));
            }};
}

#define AT(member)                                                                                 \
    [](config & c) -> auto &                                                                       \
    {                                                                                              \
        return c.member;                                                                           \
    }

/** [agent] */
std::vector<knob> agent_knobs()
{
    return {
        {"agent", "mode", "text",
         "`move`: the agent moves ranks. `observe`: it does everything but that, and reports what "
         "it "
         "would have done. `off`: it is a member of the network, and nothing else",
         [](config &c, const toml::node &n) -> std::string {
             auto v = n.value_exact<std::string>();
             return set_mode(c, v.value_or("")) ? "" : "wants one of move, observe, off";
         },
         [](const config &) { return std::string("\"observe\""); }},
        text("agent", "host", AT(host),
             "Name of this node as MPI gives it. Default: the host name"),
        text("agent", "listen", AT(listen),
             "ZeroMQ endpoint to listen at. Its port has to be the same on all nodes if others are "
             "to "
             "find this agent by a seed without a port. Default: `tcp://*:PORT`, where *PORT* is "
             "20000 + user number mod 12000"),
        text("agent", "advertise", AT(advertise),
             "Address at which peers reach this node, as `HOST` or `tcp://HOST:PORT`. Default: "
             "`listen` with the host name"),
        {"agent", "seeds", "list of text",
         "Agents that this one joins by, as `HOST`, `HOST:PORT` or `tcp://HOST:PORT`. Without a "
         "port, that of `listen` is used. The list is needed for the first contact only",
         [](config &c, const toml::node &n) -> std::string {
             const toml::array *list = n.as_array();
             if (list == nullptr)
                 return wanted("a list of endpoints");
             c.logic.seeds.clear();
             for (const toml::node &one : *list) {
                 auto v = one.value_exact<std::string>();
                 if (!v || v->empty() || v->size() > 200)
                     return wanted("a list of endpoints in quotes");
                 c.logic.seeds.push_back(*v);
             }
             return "";
         },
         [](const config &) { return std::string("[]"); }},
        text("agent", "key_file", AT(key_file),
             "Key pair, as **zcmd keygen** makes it. Default: `~/.config/zc/zcmd.key`"),
        text("agent", "state_file", AT(state_file),
             "File with the state that must survive a crash. Default: `zc/zcmd-HOST.json` in "
             "`$XDG_STATE_HOME` or `~/.local/state`"),
        choice("agent", "log_level", AT(log_level), {"debug", "info", "warn", "error"},
               "Level of the least important lines that are printed"),
        text(
            "agent", "record_file", AT(record_file),
            "File to which samples and decisions are appended as JSON lines, for **zcctl report**. "
            "Default: none"),
    };
}

/** [node] and [membership] */
std::vector<knob> node_knobs()
{
    return {
        number(
            "node", "speed", AT(speed), 0, 1000,
            "Speed of one processor, relative to those of the other nodes. 0: as it is measured, "
            "which is about 1 for a core of a server of 2020 (**zcmd**(8), SPEED)"),
        number("node", "cpus", AT(cpus), 0, 65536,
               "Number of processors. 0: as many as machine, affinity and cgroup allow"),
        text(
            "node", "cgroup", AT(cgroup),
            "Directory of a cgroup, whose limit and threads are taken for the node's. Default: the "
            "agent's own cgroup if it is limited, else the machine"),
        number("node", "sample", AT(sample), 0.1, 60, "Seconds between samples of load and ranks"),

        seconds("membership", "period", AT(logic.period), 0.05, 60, "Time between pings"),
        seconds("membership", "ping_timeout", AT(logic.ping_timeout), 0.01, 60,
                "Time without an answer before other agents are asked to ping the peer"),
        seconds("membership", "suspicion", AT(logic.suspicion), 0.1, 3600,
                "Time after which a suspected peer that stays silent is taken for dead"),
        seconds("membership", "forget", AT(logic.forget), 1, 1e6,
                "Time after which a dead peer is no longer looked for"),
        number("membership", "max_members", AT(logic.max_members), 2, 4096,
               "Largest number of agents known at a time"),
        seconds("membership", "probe_period", AT(logic.probe_period), 0.1, 1e6,
                "Time between measurements of bandwidth"),
        number("membership", "probe_bytes", AT(logic.probe_bytes), 1024, 1 << 20,
               "Bytes sent for one measurement of bandwidth"),
    };
}

/** It was a flag once, and is read as one still. */
knob pattern_kmp()
{
    knob out = value_of<zcp_groups_kmp_t>(
        "policy", "pattern_kmp", AT(logic.patterns.kmp),
        {{"off", ZCP_GROUPS_KMP_OFF}, {"strict", ZCP_GROUPS_KMP_STRICT}, {"zc", ZCP_GROUPS_KMP_ZC}},
        "For `teiresias-`: what becomes of patterns that repeat a shorter one. `off`: they stay, "
        "as with the paper's original predictors. `strict`: as the paper says, they must be whole "
        "repetitions of a pattern that was found, and what is repeated takes the place of all "
        "patterns. `zc`: the shorter one takes their place, the last repetition may be cut short, "
        "and patterns that repeat nothing stay. `false` is `off`, `true` is `zc`");
    const auto by_name = out.set;
    out.set = [by_name](config &c, const toml::node &n) -> std::string {
        if (const auto flag = n.value_exact<bool>()) {
            c.logic.patterns.kmp = *flag ? ZCP_GROUPS_KMP_ZC : ZCP_GROUPS_KMP_OFF;
            return "";
        }
        return by_name(c, n);
    };
    return out;
}

/** [policy] and [decision] */
std::vector<knob> decision_knobs()
{
    return {
        choice("policy", "stealing", AT(logic.policy), {"random", "application", "network"},
               "Policy by which an idle agent chooses the peer it asks for work, and an overloaded "
               "one "
               "the rank it gives"),
        number("policy", "hops", AT(logic.hops), 1, 32,
               "Largest number of agents that a steal packet visits"),
        seconds("policy", "steal_least", AT(logic.steal_least), 0.1, 3600,
                "Shortest pause between steal packets"),
        seconds("policy", "steal_most", AT(logic.steal_most), 0.1, 86400,
                "Longest pause between steal packets, when no work is found"),
        choice(
            "policy", "decision", AT(logic.decision), {"balance", "threshold"},
            "When ranks move. `balance`: when the slower of two nodes becomes faster by it, by the "
            "hysteresis, and the move pays. `threshold`: when each thread of the node has less of "
            "a "
            "processor than `decision.threshold`; then one rank goes, and no group, as with El "
            "Maghraoui et al. (with `decision.settle`, `residence` and `memory` 0 nothing else "
            "holds "
            "it back)"),
        choice(
            "policy", "grouping", AT(logic.grouping), grouping_names(),
            "Ranks that move together. `zc`: those that the prediction engine expects to "
            "communicate; `matrix`: those that a decayed traffic matrix shows; `teiresias-basic`, "
            "`teiresias-specific` and `teiresias-levenshtein`: those that the predictors of "
            "Singh & Graham expect to communicate; `single`: none"),
        choice("policy", "transparent", AT(transparent), {"yes", "observe", "no"},
               "Ranks below **zc-hold**(1), which move without help of their programs. `yes`: they "
               "are treated as others are, so they move where `agent.mode` is `move`. `observe`: "
               "what would be done with them is reported. `no`: they are load of others"),
        value_of<collection>(
            "policy", "collect", AT(logic.collect),
            {{"node", collection::node}, {"job", collection::job}},
            "Whose messages the groups are learned from. `node`: those that ranks of a job on this "
            "node send. `job`: of all its ranks, as Singh & Graham have it: with each sample an "
            "agent tells the others what ranks on its node have sent, so the network carries each "
            "message of a rank, in 20 bytes, to every other node of the job. To be compared with, "
            "in small jobs. All agents need the same value. Below **zc-hold**(1) it is as `node`"),
        number("policy", "pattern_literals", AT(logic.patterns.literals), 2, 32,
               "For `teiresias-`: L, messages that a pattern has at least"),
        number("policy", "pattern_window", AT(logic.patterns.window), 2, 32,
               "For `teiresias-`: W, places that L messages of a pattern that follow each other "
               "take at most. The others may be any messages. At least `pattern_literals`"),
        number("policy", "pattern_support", AT(logic.patterns.support), 2, 1000,
               "For `teiresias-`: K, times that a pattern has to occur in a sample"),
        number("policy", "pattern_period", AT(logic.patterns.period), 16, kLongestPeriod,
               "For `teiresias-`: sampling period, in messages of a job that are learned from "
               "(`policy.collect`)"),
        flag("policy", "pattern_adaptive", AT(logic.patterns.adaptive),
             "For `teiresias-`: begin with that period, and adapt it to the pattern found"),
        pattern_kmp(),
        value_of<zcp_groups_match_t>(
            "policy", "pattern_match", AT(logic.patterns.match),
            {{"whole", ZCP_GROUPS_MATCH_WHOLE}, {"prefix", ZCP_GROUPS_MATCH_PREFIX}},
            "For `teiresias-specific`: when a pattern is known from earlier. `whole`: if an "
            "earlier one is equal to it. `prefix`: also if an earlier one begins with it"),
        value_of<zcp_groups_recent_t>(
            "policy", "pattern_recent", AT(logic.patterns.recent),
            {{"over", ZCP_GROUPS_RECENT_OVER}, {"current", ZCP_GROUPS_RECENT_CURRENT}},
            "For `teiresias-`: the sampling period that is taken for the most recent one. `over`: "
            "the last one that is over. `current`: the one in which ranks are to be moved, as far "
            "as it has come; each question then costs a search"),
        value_of<pattern_settings::membership>(
            "policy", "pattern_group", AT(logic.patterns.group),
            {{"near", pattern_settings::membership::near},
             {"all", pattern_settings::membership::all}},
            "For `teiresias-`: whom a rank that has to go takes along. `near`: of the predicted "
            "pattern those that exchange most with it, as with the other groupings. `all`: all "
            "that "
            "are in the pattern, as Singh & Graham have it, if the rank is in it"),

        number(
            "decision", "threshold", AT(logic.threshold), 0.01, 1,
            "For `policy.decision = \"threshold\"`: processors that a node needs for each of its "
            "threads"),
        number("decision", "hysteresis", AT(logic.hysteresis), 0.01, 0.9,
               "Part by which a move must shorten the iteration"),
        number("decision", "payback", AT(logic.payback), 1, 1000,
               "Factor by which the gain of a move must exceed its cost"),
        seconds("decision", "settle", AT(logic.settle), 0, 3600,
                "Time for which a node must be overloaded before it gives ranks away"),
        seconds("decision", "residence", AT(logic.residence), 0, 86400,
                "Time that a rank stays after a move; it doubles with each move"),
        seconds("decision", "memory", AT(logic.memory), 0, 1e6,
                "Time for which a rank does not return to the node that it came from"),
        number("decision", "oversubscribe", AT(logic.oversubscribe), 0.1, 1000,
               "Ranks per processor that this node accepts"),
        number("decision", "max_ranks", AT(logic.max_ranks), 0, 1e6,
               "Ranks that this node accepts. 0: as `oversubscribe` allows"),
        number("decision", "most_at_once", AT(logic.most_at_once), 1, 1024,
               "Largest number of ranks moved in one step"),
    };
}

/** [cost], [protocol], [jobs] and [status] */
std::vector<knob> other_knobs()
{
    return {
        number("cost", "bandwidth", AT(logic.bandwidth), 1e3, 1e13,
               "Bytes per second of a connection that has not been measured"),
        number("cost", "spawn", AT(logic.spawn), 0, 3600,
               "Seconds that starting the successors takes, until it has been measured"),

        seconds("protocol", "commit_window", AT(logic.commit_window), 0.1, 600,
                "Time from the first message of a move to the request to the job"),
        seconds(
            "protocol", "lease", AT(logic.lease), 1, 3600,
            "Time for which the owner of a lent rank leaves it alone; at least 4 commit windows"),
        seconds("protocol", "move_timeout", AT(logic.move_timeout), 20, 86400,
                "Time without an answer from the job after which a move is given up. None is begun "
                "whose images need more than half of it"),

        text("jobs", "socket_directory", AT(socket_directory),
             "Directory of the jobs' control sockets. Default: `$XDG_RUNTIME_DIR/zcm`, or "
             "`/tmp/zcm-UID` where that is not possible"),
        text("jobs", "profile_directory", AT(profile_directory),
             "Directory of the ranks' profiles. Default: `ranks` in `socket_directory`"),
        number("jobs", "holder_port", AT(holder_port), 0, 65535,
               "Port at which **zc-hold --listen** is on all nodes. 0: the one that it takes by "
               "itself"),

        text("status", "socket", AT(status_socket),
             "Socket for **zcctl** and Prometheus. Default: `zcmd.sock` in `socket_directory`"),
        number("status", "prometheus_port", AT(prometheus_port), 0, 65535,
               "Port on 127.0.0.1 at which `/metrics` is served, too. 0: none"),
    };
}

const std::vector<knob> &knobs()
{
    static const std::vector<knob> all = [] {
        std::vector<knob> every;
        for (auto *part : {agent_knobs, node_knobs, decision_knobs, other_knobs})
            for (knob &one : part())
                every.push_back(std::move(one));
        return every;
    }();
    return all;
}

#undef AT

/** Optimal string alignment: the changes, omissions, additions and swaps between two names. */
std::size_t distance(std::string_view a, std::string_view b)
{
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); i++)
        d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); j++)
        d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); i++) {
        for (std::size_t j = 1; j <= b.size(); j++) {
            d[i][j] = std::min(
                {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a.size()][b.size()];
}

std::string nearest(std::string_view name, const std::vector<std::string> &known)
{
    auto best = std::min_element(known.begin(), known.end(), [&](const auto &a, const auto &b) {
        return distance(name, a) < distance(name, b);
    });
    if (best == known.end() || distance(name, *best) > std::max<std::size_t>(2, name.size() / 2))
        return "";
    return fmt::format("; did you mean \"{}\"?", *best);
}

[[noreturn]] void fail(const std::string &file, const toml::source_region &where,
                       std::string_view key, const std::string &what)
{
    throw config_error(fmt::format("{}:{}: {}: {}", file, where.begin.line, key, what));
}

void check_together(const config &c, const std::string &file)
{
    auto wrong = [&](const char *what) { throw config_error(fmt::format("{}: {}", file, what)); };
    if (c.logic.lease < 4 * c.logic.commit_window)
        wrong("protocol.lease: must be at least four times protocol.commit_window, else a rank "
              "could be decided on by two agents");
    if (c.logic.steal_most < c.logic.steal_least)
        wrong("policy.steal_most: must not be below policy.steal_least");
    if (c.logic.patterns.window < c.logic.patterns.literals)
        wrong("policy.pattern_window: must not be below policy.pattern_literals");
    if (3 * c.logic.ping_timeout > 10 * c.logic.period)
        wrong("membership.ping_timeout: must be at most a few periods");
    if (!c.host.empty() && c.host.size() > 63)
        wrong("agent.host: longer than 63 characters");
}

} // namespace

config parse_config(std::string_view text, const std::string &name)
{
    toml::table root;
    try {
        root = toml::parse(text, name);
    } catch (const toml::parse_error &e) {
        throw config_error(fmt::format("{}:{}: not TOML: {}", name, e.source().begin.line,
                                       std::string(e.description())));
    }
    config c;
    for (const auto &[table_key, table_node] : root) {
        std::string table(table_key.str());
        std::vector<std::string> tables;
        std::vector<std::string> keys;
        for (const knob &k : knobs()) {
            if (tables.empty() || tables.back() != k.table)
                tables.emplace_back(k.table);
            if (table == k.table)
                keys.emplace_back(k.key);
        }
        if (keys.empty()) {
            std::string hint = nearest(table, tables);
            for (const knob &k : knobs()) {
                if (table == k.key)
                    hint = fmt::format("; it belongs below [{}]", k.table);
            }
            fail(name, table_key.source(), table, "no such table" + hint);
        }
        const toml::table *entries = table_node.as_table();
        if (entries == nullptr)
            fail(name, table_key.source(), table, "is a table: write [" + table + "]");
        for (const auto &[key_key, node] : *entries) {
            std::string key(key_key.str());
            auto k = std::find_if(knobs().begin(), knobs().end(), [&](const knob &known) {
                return table == known.table && key == known.key;
            });
            std::string full = table + "." + key;
            if (k == knobs().end()) {
                std::string hint = nearest(key, keys);
                for (const knob &other : knobs()) {
                    if (key == other.key)
                        hint = fmt::format("; it belongs below [{}]", other.table);
                }
                fail(name, key_key.source(), full, "no such key" + hint);
            }
            std::string wrong = k->set(c, node);
            if (!wrong.empty())
                fail(name, node.source(), full, wrong);
        }
    }
    check_together(c, name);
    return c;
}

bool set_mode(config &c, std::string_view name)
{
    if (name == "move")
        c.logic.act = mode::move;
    else if (name == "observe")
        c.logic.act = mode::observe;
    else if (name == "off")
        c.logic.act = mode::off;
    else
        return false;
    return true;
}

config read_config(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    if (!in || !(text << in.rdbuf()))
        throw config_error(fmt::format("{}: {}", path, std::strerror(errno != 0 ? errno : EIO)));
    return parse_config(text.str(), path);
}

std::string default_config_file()
{
    const char *home = std::getenv("HOME");
    return std::string(home == nullptr ? "" : home) + "/.config/zc/zcmd.toml";
}

int default_port(unsigned uid)
{
    constexpr unsigned kFirst = 20000, kPorts = 12000; /* the system's own begin at 32768 */
    return static_cast<int>(kFirst + uid % kPorts);
}

void complete(config &c)
{
    auto environment = [](const char *name) -> std::string {
        const char *value = std::getenv(name);
        return value == nullptr ? "" : value;
    };
    c.logic.collect_delay = std::max(c.logic.collect_delay, from_seconds(2 * c.sample));
    if (c.host.empty())
        c.host = host_name();
    if (c.listen.empty())
        c.listen = fmt::format("tcp://*:{}", default_port(geteuid()));
    /* Agents of a user are all at one port. */
    const auto at = port_at(c.listen);
    const std::string port = at == std::string::npos ? "*" : c.listen.substr(at);
    for (std::string &seed : c.logic.seeds)
        seed = whole_endpoint(seed, port == "*" ? std::to_string(default_port(geteuid())) : port);
    if (!c.advertise.empty())
        c.advertise = whole_endpoint(c.advertise, port);
    std::string home = environment("HOME");
    char place[PATH_MAX];
    const zcm_runtime runtime = zcm_runtime_directory(place, sizeof place);
    const std::string ours = place;
    if (runtime != ZCM_RUNTIME_USED && runtime != ZCM_RUNTIME_UNSET)
        c.why_not_runtime =
            fmt::format("XDG_RUNTIME_DIR={}: {}, so {} is used", environment("XDG_RUNTIME_DIR"),
                        zcm_runtime_text(runtime), ours);
    std::vector<std::string> others;
    for (int n = 1; zcm_runtime_place(n, place, sizeof place) == 0; n++)
        others.emplace_back(place);
    if (c.socket_directory.empty()) {
        c.socket_directory = ours;
        c.other_socket_directories = others;
    }
    if (c.profile_directory.empty()) {
        c.profile_directory = environment("ZCM_PROFILE_DIR");
        if (c.profile_directory.empty()) {
            c.profile_directory = ours + "/ranks";
            for (const std::string &other : others)
                c.other_profile_directories.push_back(other + "/ranks");
        }
    }
    if (c.status_socket.empty())
        c.status_socket = ours + "/zcmd.sock";
    if (c.key_file.empty())
        c.key_file = default_key_file();
    if (c.state_file.empty()) {
        std::string state = environment("XDG_STATE_HOME");
        c.state_file =
            (state.empty() ? home + "/.local/state" : state) + "/zc/zcmd-" + c.host + ".json";
    }
    if (c.advertise.empty()) {
        c.advertise = c.listen;
        auto star = c.advertise.find("://*");
        if (star != std::string::npos)
            c.advertise.replace(star + 3, 1, c.host);
    }
}

std::string describe_config()
{
    std::string out;
    std::string table;
    config defaults;
    for (const knob &k : knobs()) {
        if (table != k.table) {
            table = k.table;
            out += fmt::format("\n## [{}]\n\n", table);
        }
        std::string shown = k.show(defaults);
        out += fmt::format("**{}** ({}{}{})\n: {}.\n\n", k.key, k.type,
                           shown == "see below" ? "" : ", ", shown == "see below" ? "" : shown,
                           k.meaning);
    }
    return out;
}

} // namespace zc::agent
