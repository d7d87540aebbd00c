/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatched.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "daemon.h"
#include "found_agent.h"
#include "identity.h"

namespace zc::agent {
namespace {

using nlohmann::json;

constexpr int kVersionOfOrder = 1;
constexpr int kOrderComes = 30'000; /* ms */
constexpr int kForAll = -1;         /* as long as zcm-run is there: it looks on other hosts */
constexpr int kLook = 500;          /* ms from one look at an agent that was found to the next */
constexpr int kLookLater = 3000;    /* when only its end is still of interest */
constexpr std::size_t kLongestOrder = 1 << 20;

/** The first line of @in; nothing is read beyond it. */
std::string read_line(int in, int patience)
{
    std::string line;
    for (;;) {
        pollfd event{in, POLLIN, 0};
        int there = poll(&event, 1, patience);
        if (there < 0 && errno == EINTR)
            continue;
        char c = 0;
        if (there <= 0 || read(in, &c, 1) != 1 || line.size() > kLongestOrder)
            throw dispatch_error("no order on the standard input: is started by zcm-run --agents, "
                                 "not by hand");
        if (c == '\n')
            return line;
        line += c;
    }
}

/** The directory of this life of the agent, with what it creates there, goes with it. */
class own_directory {
  public:
    explicit own_directory(std::string path) : path_(std::move(path))
    {
        if (mkdir(path_.c_str(), 0700) != 0)
            throw dispatch_error(
                path_ + ": " + std::strerror(errno) +
                (errno == EEXIST ? "; do hosts share it? (zcm-run --agents-dir)" : ""));
    }
    ~own_directory()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    own_directory(const own_directory &) = delete;
    own_directory &operator=(const own_directory &) = delete;

  private:
    std::string path_;
};

void say(int out, const json &what)
{
    const std::string line = what.dump() + "\n";
    if (write(out, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        spdlog::debug("zcm-run does not listen: {}", std::strerror(errno));
}

/** No life of this agent was before it, so no rank that it finds can be lent. */
void write_first_state(const std::string &path)
{
    saved_state first;
    first.id = draw_identity();
    std::ofstream file(path);
    file << to_text(first) << "\n";
    if (!file.flush())
        throw dispatch_error(path + ": " + std::strerror(errno));
}

/** Of our version. */
json parse_line(std::string_view line)
{
    json given = json::parse(line, nullptr, false);
    if (!given.is_object() || given.value("version", json()) != json(kVersionOfOrder))
        throw dispatch_error(
            fmt::format("an order that this zcmd ({}) does not understand: is zcm-run of the same "
                        "version?",
                        kVersionOfOrder));
    return given;
}

/** Until @in ends. Throws found_agent_error, also if the agent ends. */
void watch_found(found_agent &agent, const config &c, int in, int out)
{
    std::vector<std::string> others;
    bool has_told = false;
    for (;;) {
        pollfd event{in, POLLIN, 0};
        const int there = poll(&event, 1, has_told ? kLookLater : kLook);
        if (there < 0 && errno != EINTR)
            return;
        if (there > 0) {
            std::string line;
            try {
                line = read_line(in, kOrderComes);
            } catch (const dispatch_error &) {
                return; /* the input has ended, and so has the job */
            }
            const json given = json::parse(line, nullptr, false);
            if (given.is_object() && given.contains("others"))
                others = given["others"].get<std::vector<std::string>>();
        }
        const auto alive = agent.alive_of(others);
        if (alive && !others.empty() && !has_told &&
            *alive >= std::min(others.size(), std::size_t{c.logic.max_members})) {
            has_told = true;
            say(out, {{"together", true}});
        }
    }
}

/** false: there is none, and zcm-run has been told so. */
bool serve_found(const search_order &wanted, int in, int out)
{
    std::optional<found_agent> agent;
    config c;
    for (const config &one : may_have(wanted.c)) {
        agent = found_agent::find(one);
        c = one;
        if (agent)
            break;
    }
    if (!agent) {
        say(out, {{"found", false}});
        return false;
    }
    if (!wanted.sockets.empty() && c.socket_directory != wanted.sockets &&
        std::ranges::count(c.other_socket_directories, wanted.sockets) == 0)
        throw found_agent_error("the agent that runs here does not look for jobs in " +
                                wanted.sockets + " (ZC_MIGRATE_SOCKETS)");
    say(out, {{"found", true},
              {"address", agent->address()},
              {"public", agent->keys().public_key},
              {"secret", agent->keys().secret_key},
              {"profiles", c.profile_directory},
              {"mode", agent->mode()},
              {"socket", c.status_socket}});
    watch_found(*agent, c, in, out);
    return true;
}

} // namespace

std::optional<search_order> parse_search(std::string_view line)
{
    const json given = parse_line(line);
    if (!given.contains("find"))
        return std::nullopt;
    try {
        search_order wanted{{}, given.value("sockets", "")};
        const std::string usual = default_config_file();
        if (given.contains("config"))
            wanted.c =
                parse_config(given.at("config").get<std::string>(), "the configuration for agents");
        else if (access(usual.c_str(), F_OK) == 0)
            wanted.c = read_config(usual);
        return wanted;
    } catch (const json::exception &problem) {
        throw dispatch_error(fmt::format("an order that is not whole: {}", problem.what()));
    }
}

dispatch_order parse_order(std::string_view line)
{
    const json given = parse_line(line);
    try {
        dispatch_order order;
        order.c = parse_config(given.value("config", ""), "the configuration for agents");
        if (const std::string mode = given.value("mode", "");
            !mode.empty() && !set_mode(order.c, mode))
            throw dispatch_error("no such mode: " + mode);
        order.directory = given.at("directory");
        order.agents = given.at("agents");
        if (given.contains("secret"))
            order.keys = key_pair{given.at("public"), given.at("secret")};
        if (order.directory.empty() || order.directory[0] != '/' || order.agents == 0)
            throw dispatch_error("an order without a directory, or for no agents");
        config &c = order.c;
        if (c.listen.empty())
            c.listen = "tcp://*:*";
        c.advertise = given.at("host");
        c.logic.seeds = given.at("seeds").get<std::vector<std::string>>();
        c.log_level = given.value("log_level", c.log_level);
        c.state_file = order.directory + "/state.json";
        c.status_socket = order.directory + "/zcmd.sock";
        c.profile_directory = given.value("profiles", order.directory + "/ranks");
        if (const std::string sockets = given.value("sockets", ""); !sockets.empty())
            c.socket_directory = sockets;
        return order;
    } catch (const json::exception &problem) {
        throw dispatch_error(fmt::format("an order that is not whole: {}", problem.what()));
    }
}

void run_dispatched(int in, int out)
{
    std::signal(SIGPIPE, SIG_IGN); /* its input ends as well */
    std::string line = read_line(in, kOrderComes);
    if (const auto search = parse_search(line)) {
        if (serve_found(*search, in, out))
            return;
        try {
            line = read_line(in, kForAll);
        } catch (const dispatch_error &) {
            return; /* no agent is wanted here any more */
        }
    }
    dispatch_order order = parse_order(line);
    config &c = order.c;
    complete(c);
    spdlog::set_level(spdlog::level::from_str(c.log_level));
    const own_directory ours(order.directory);
    write_first_state(c.state_file);
    const bool first = !order.keys;
    const key_pair keys = first ? make_keys() : *order.keys;
    node_daemon daemon(c, keys);
    json ready = {{"host", c.host}, {"address", daemon.address()}, {"socket", c.status_socket}};
    if (first) {
        ready["public"] = keys.public_key;
        ready["secret"] = keys.secret_key;
    }
    say(out, ready);
    const std::size_t others = std::min(order.agents, c.logic.max_members) - 1;
    daemon.live_by(in, [others, out, told = false](std::size_t alive) mutable {
        if (alive >= others && !told)
            say(out, {{"together", told = true}});
    });
    daemon.run();
}

} // namespace zc::agent
