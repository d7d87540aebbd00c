/* SPDX-License-Identifier: BSD-3-Clause */
#include "dispatched.h"

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
#include "identity.h"

namespace zc::agent {
namespace {

using nlohmann::json;

constexpr int kVersionOfOrder = 1;
constexpr int kOrderComes = 30'000; /* ms */
constexpr std::size_t kLongestOrder = 1 << 20;

/** The first line of @in; nothing is read beyond it. */
std::string read_line(int in)
{
    std::string line;
    for (;;) {
        pollfd event{in, POLLIN, 0};
        int there = poll(&event, 1, kOrderComes);
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

} // namespace

dispatch_order parse_order(std::string_view line)
{
    const json given = json::parse(line, nullptr, false);
    if (!given.is_object() || given.value("version", json()) != json(kVersionOfOrder))
        throw dispatch_error(
            fmt::format("an order that this zcmd ({}) does not understand: is zcm-run of the same "
                        "version?",
                        kVersionOfOrder));
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
        c.profile_directory = order.directory + "/ranks";
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
    dispatch_order order = parse_order(read_line(in));
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
