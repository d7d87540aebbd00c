/* SPDX-License-Identifier: BSD-3-Clause */
#include "found_agent.h"

#include <algorithm>
#include <climits>

#include <nlohmann/json.hpp>

#include "agent_client.h"
#include "runtime_directory.h"

namespace zc::agent {
namespace {

using nlohmann::json;

json page_of(const std::string &socket, const char *name)
{
    try {
        return json::parse(control::get(socket, name));
    } catch (const control::no_agent &) {
        throw;
    } catch (const control::client_error &problem) {
        throw found_agent_error(problem.what());
    } catch (const json::exception &problem) {
        throw found_agent_error(socket + ": " + problem.what());
    }
}

} // namespace

std::vector<config> may_have(const config &c)
{
    config ours = c;
    complete(ours);
    std::vector<config> all = {ours};
    char place[PATH_MAX];
    zcm_runtime_directory(place, sizeof place);
    const std::string own_profiles = std::string(place) + "/ranks";
    for (int n = 1; c.status_socket.empty() && zcm_runtime_place(n, place, sizeof place) == 0;
         n++) {
        config other = ours;
        other.status_socket = std::string(place) + "/zcmd.sock";
        /* It reads of ranks in our place, too, but ranks of a job have one place on all hosts. */
        if (c.profile_directory.empty() && ours.profile_directory == own_profiles)
            other.profile_directory = std::string(place) + "/ranks";
        all.push_back(std::move(other));
    }
    return all;
}

std::optional<found_agent> found_agent::find(const config &c, const patience &with)
{
    found_agent one(c.status_socket, with);
    try {
        one.mode_ = page_of(one.socket_, "/status").at("mode");
        const json page = page_of(one.socket_, "/nodes");
        for (const json &node : page.at("nodes"))
            if (node.at("self"))
                one.address_ = node.at("address");
    } catch (const control::no_agent &) {
        return std::nullopt;
    } catch (const json::exception &problem) {
        throw found_agent_error(one.socket_ + ": " + problem.what());
    }
    one.keys_ = read_keys(c.key_file);
    return one;
}

std::optional<std::size_t> found_agent::alive_of(const std::vector<std::string> &addresses)
{
    std::size_t alive = 0;
    try {
        const json page = json::parse(control::get(socket_, "/nodes", patience_.answer));
        for (const json &node : page.at("nodes"))
            alive += node.at("state") == "alive" &&
                     std::ranges::count(addresses, node.at("address").get<std::string>()) > 0;
    } catch (const control::no_agent &problem) {
        throw found_agent_error(problem.what());
    } catch (const std::exception &problem) { /* the client's, or JSON's */
        if (clock::now() - answered_ < patience_.silence)
            return std::nullopt;
        throw found_agent_error(problem.what());
    }
    answered_ = clock::now();
    return alive;
}

} // namespace zc::agent
