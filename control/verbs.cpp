/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agent_client.h"
#include "html_report.h"

namespace zc::control {
namespace {

using nlohmann::json;

struct view {
    std::string socket = default_socket();
    bool as_json = false;
    bool watch = false;
    double interval = 1;
    std::optional<std::uint32_t> rank;
    std::string job;
    std::size_t last = 20;
};

json page(const view &v, const char *name)
{
    json j = json::parse(get(v.socket, name), nullptr, false);
    if (j.is_discarded())
        throw client_error(v.socket + ": not an agent of zc");
    return j;
}

std::string amount(double bytes)
{
    const char *units[] = {"", "K", "M", "G", "T"};
    int unit = 0;
    while (bytes >= 9999.5 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    return fmt::format("{:.0f}{}", bytes, units[unit]);
}

std::string clock_time(double seconds)
{
    auto t = static_cast<std::time_t>(seconds);
    std::tm parts{};
    localtime_r(&t, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%H:%M:%S", &parts);
    return text;
}

double number(const json &j)
{
    return j.is_number() ? j.get<double>() : 0;
}

void print_nodes(const json &j)
{
    fmt::print("{:<20} {:<8} {:>6} {:>6} {:>7} {:>5} {:>5} {:>9} {:>10}\n", "host", "state", "cpus",
               "speed", "demand", "ranks", "room", "rtt µs", "bytes/s");
    for (const json &n : j.at("nodes")) {
        const json &l = n.at("load");
        bool self = n.at("self");
        fmt::print(
            "{:<20} {:<8} {:>6.2f} {:>6} {:>7.2f} {:>5} {:>5} {:>9} {:>10}\n",
            n.at("host").get<std::string>() + (self ? "*" : ""),
            l.at("draining").get<bool>() ? "draining" : n.at("state").get<std::string>(),
            number(l.at("cpus")),
            n.contains("relative_speed") ? fmt::format("{:.2f}", number(n.at("relative_speed")))
                                         : "",
            number(l.at("demand")), l.at("ranks").get<std::uint64_t>(),
            l.at("room").get<std::uint64_t>(),
            self ? "" : fmt::format("{:.0f}", number(n.at("rtt_us"))),
            self || number(n.at("bytes_per_s")) == 0 ? "" : amount(number(n.at("bytes_per_s"))));
    }
}

/** Of a rank that can be moved. */
std::string way_of(const json &rank)
{
    if (rank.value("way", "zcm") != "transparent")
        return "";
    std::string text = rank.value("idle", false) ? " transparent, idle" : " transparent";
    if (!rank.value("messages_known", true))
        text += ", messages not known";
    if (const int times = rank.value("refusals", 0); times > 0)
        text += fmt::format(", refused {} times: {}", times, rank.value("refused", ""));
    return text;
}

void print_ranks(const json &j)
{
    fmt::print("{:<18} {:>6} {:>12} {:>8} {:>9} {:>6} {:>9} {:>6}  {}\n", "job", "rank",
               "iterations", "per s", "work ms", "in MPI", "image", "moves", "talks to");
    for (const json &r : j.at("ranks")) {
        std::string peers;
        for (const json &p : r.at("peers"))
            peers +=
                fmt::format("{}{}", peers.empty() ? "" : " ", p.at("rank").get<std::uint64_t>());
        std::string name = r.at("job_name");
        const double work_s = r.contains("work_s") ? number(r.at("work_s")) : 0;
        fmt::print("{:<18} {:>6} {:>12} {:>8.2f} {:>9} {:>5.0f}% {:>9} {:>6}  {}{}\n",
                   (name.empty() ? r.at("job").get<std::string>() : name).substr(0, 18),
                   r.at("rank").get<std::uint64_t>(), r.at("iterations").get<std::uint64_t>(),
                   number(r.at("iterations_per_s")),
                   work_s > 0 ? fmt::format("{:.3f}", 1000 * work_s) : "",
                   100 * number(r.at("mpi_share")), amount(number(r.at("image_bytes"))),
                   r.at("moves").get<std::uint64_t>(), peers,
                   r.at("leaving").get<bool>()   ? " (leaving)"
                   : r.at("movable").get<bool>() ? way_of(r)
                                                 : " (cannot be moved)");
    }
}

void print_groups(const json &j)
{
    for (const json &job : j.at("jobs")) {
        fmt::print("job {} (grouping {})\n", job.at("job").get<std::string>(),
                   j.at("grouping").get<std::string>());
        if (job.contains("no_groups") && job.at("no_groups").is_string())
            fmt::print("  no groups, ranks move one by one: {}\n",
                       job.at("no_groups").get<std::string>());
        for (const json &g : job.at("groups"))
            fmt::print("  rank {:>5} with {}\n", g.at("rank").get<std::uint64_t>(),
                       g.at("group").dump());
        std::size_t shown = 0;
        for (const json &f : job.at("flows")) {
            if (shown++ == 10)
                break;
            fmt::print("  {:>5} -> {:<5} {:>9} bytes expected\n", f.at("src").get<std::uint64_t>(),
                       f.at("dst").get<std::uint64_t>(), amount(number(f.at("bytes"))));
        }
    }
}

std::vector<json> chosen(const json &j, const view &v)
{
    std::vector<json> records;
    for (const json &r : j.at("records")) {
        const json &ranks = r.at("ranks");
        if (v.rank && std::find(ranks.begin(), ranks.end(), json(*v.rank)) == ranks.end())
            continue;
        if (!v.job.empty() && !r.at("job").get<std::string>().starts_with(v.job))
            continue;
        records.push_back(r);
    }
    if (records.size() > v.last)
        records.erase(records.begin(), records.end() - static_cast<std::ptrdiff_t>(v.last));
    return records;
}

std::string rank_list(const json &ranks)
{
    std::string text;
    for (const json &r : ranks)
        text += fmt::format("{}{}", text.empty() ? "" : ",", r.get<std::uint64_t>());
    return text;
}

void print_history(const json &j, const view &v)
{
    fmt::print("{:<8} {:<10} {:<20} {:<16} {:>7} {:>7} {:>9}\n", "time", "what", "ranks", "to",
               "before", "after", "bytes");
    for (const json &r : chosen(j, v)) {
        if (r.at("what") == "refused")
            continue;
        fmt::print("{:<8} {:<10} {:<20} {:<16} {:>7.2f} {:>7.2f} {:>9}\n",
                   clock_time(number(r.at("time"))), r.at("what").get<std::string>(),
                   rank_list(r.at("ranks")).substr(0, 20),
                   r.at("to_host").get<std::string>().substr(0, 16), number(r.at("before")),
                   number(r.at("after")), amount(number(r.at("bytes"))));
    }
}

void print_why(const json &j, const view &v)
{
    for (const json &r : chosen(j, v)) {
        auto times = r.at("times").get<std::uint64_t>();
        std::string ranks = rank_list(r.at("ranks"));
        fmt::print("{} {}{}{}: {}{}\n", clock_time(number(r.at("time"))),
                   r.at("what").get<std::string>(), ranks.empty() ? "" : " rank " + ranks,
                   r.at("to_host").get<std::string>().empty()
                       ? ""
                       : " to " + r.at("to_host").get<std::string>(),
                   r.at("why").get<std::string>(),
                   times > 1 ? fmt::format(" ({} times)", times) : "");
    }
}

/** A verb that shows a page, once or again and again. */
void add_view(CLI::App &app, const char *name, const char *text, const char *page_name,
              std::function<void(const json &, const view &)> print, bool with_records)
{
    auto v = std::make_shared<view>();
    CLI::App *verb = app.add_subcommand(name, text);
    verb->add_option("--agent", v->socket, "socket of the agent")->capture_default_str();
    verb->add_flag("--json", v->as_json, "print what the agent says, as JSON");
    verb->add_flag("--watch", v->watch, "again and again");
    verb->add_option("--interval", v->interval, "seconds between, with --watch")
        ->check(CLI::Range(0.1, 3600.0));
    if (with_records) {
        verb->add_option("--rank", v->rank, "of this rank only");
        verb->add_option("--job", v->job, "of this job only (as many digits as needed)");
        verb->add_option("--last", v->last, "so many")->capture_default_str();
    }
    const CLI::Option *json_of_all = app.get_option_no_throw("--json");
    verb->callback([v, page_name, print, with_records, json_of_all] {
        const bool as_json = v->as_json || (json_of_all != nullptr && json_of_all->count() > 0);
        do {
            json j = page(*v, page_name);
            if (as_json) {
                if (with_records)
                    j["records"] = chosen(j, *v);
                fmt::print("{}\n", j.dump());
            } else {
                if (v->watch && isatty(STDOUT_FILENO))
                    fmt::print("\x1b[H\x1b[2J");
                try {
                    print(j, *v);
                } catch (const json::exception &) {
                    throw client_error(v->socket + ": another version of zcmd");
                }
            }
            if (std::fflush(stdout) != 0)
                throw client_error("standard output: cannot write");
            if (v->watch)
                std::this_thread::sleep_for(std::chrono::duration<double>(v->interval));
        } while (v->watch);
    });
}

/** Unless @is_other says that it is something else that is asked for. */
CLI::App *add_command(CLI::App &app, const char *name, const char *text,
                      const std::function<bool()> &is_other = {})
{
    auto socket = std::make_shared<std::string>(default_socket());
    CLI::App *verb = app.add_subcommand(name, text);
    verb->add_option("--agent", *socket, "socket of the agent")->capture_default_str();
    verb->callback([socket, name, is_other] {
        if (!is_other || !is_other())
            post(*socket, std::string("/") + name);
    });
    return verb;
}

} // namespace

CLI::App *add_drain_verb(CLI::App &app, const std::string &host)
{
    return add_command(app, "drain",
                       "give all ranks of this node away and take none; or move all of HOST",
                       [&host] { return !host.empty(); });
}

void add_agent_verbs(CLI::App &app)
{
    auto plain = [](auto print) { return [print](const json &j, const view &) { print(j); }; };
    add_view(app, "nodes", "the nodes this agent knows, and their load", "/nodes",
             plain(print_nodes), false);
    add_view(app, "ranks", "the ranks on this node, and what they do", "/ranks", plain(print_ranks),
             false);
    add_view(app, "groups", "groups of ranks that are expected to communicate", "/groups",
             plain(print_groups), false);
    add_view(app, "history", "what was decided and moved", "/history", print_history, true);
    add_view(app, "why", "decisions in words: why, and why not", "/history", print_why, true);
    add_command(app, "resume", "take ranks again after drain");
    add_command(app, "leave", "end the agent of this node; its ranks stay");

    auto records = std::make_shared<std::vector<std::string>>();
    auto out = std::make_shared<std::string>("zc-report.html");
    CLI::App *report = app.add_subcommand("report", "one HTML file from the records of agents");
    report->add_option("record", *records, "files that agent.record_file named")->required();
    report->add_option("-o,--out", *out, "HTML file to write")->capture_default_str();
    report->callback([records, out] {
        std::string html = make_report(*records);
        std::ofstream file(*out, std::ios::binary);
        file << html;
        file.close();
        if (!file)
            throw client_error(*out + ": cannot write");
    });
}

} // namespace zc::control
