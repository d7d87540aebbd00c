/* SPDX-License-Identifier: BSD-3-Clause */
#include "request.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "error.h"

namespace zc::control {

using nlohmann::json;

namespace {

constexpr const char *kCommands[] = {"status", "move", "checkpoint"};
constexpr const char *kWays[] = {"memory", "image", "disk"};

} // namespace

const char *name_of(request::way via)
{
    return kWays[static_cast<int>(via)];
}

request::way way_of(const std::string &name)
{
    const auto *const found = std::ranges::find(kWays, name);
    if (found == std::end(kWays))
        throw error(EINVAL, "cannot move via " + name + " (memory, image or disk)");
    return static_cast<request::way>(found - std::begin(kWays));
}

std::string request::to_json() const
{
    json object = {{"command", kCommands[static_cast<int>(kind)]}};
    if (kind == what::move) {
        object["via"] = name_of(via);
        if (epoch)
            object["epoch"] = *epoch;
        for (const target &one : moves)
            object["moves"].push_back({{"rank", one.rank}, {"host", one.host}});
    }
    return object.dump();
}

request request::from_json(const std::string &text)
{
    try {
        const json object = json::parse(text);
        const std::string command = object.at("command");
        request r;
        int index = 0;
        for (const char *name : kCommands) {
            if (command == name)
                break;
            index++;
        }
        if (index == 3)
            throw error(EINVAL, "no such command: " + command);
        r.kind = static_cast<what>(index);
        if (r.kind == what::move) {
            r.via = way_of(object.value("via", "memory"));
            if (object.contains("epoch"))
                r.epoch = object.at("epoch").get<std::uint64_t>();
            for (const json &one : object.at("moves"))
                r.moves.push_back({one.at("rank"), one.at("host")});
        }
        return r;
    } catch (const json::exception &problem) {
        throw error(EINVAL, std::string("not a request: ") + problem.what());
    }
}

void request::check(int ranks) const
{
    if (kind != what::move)
        return;
    if (moves.empty())
        throw error(EINVAL, "no rank named to move");
    std::set<int> seen;
    for (const target &one : moves) {
        if (one.rank < 0 || one.rank >= ranks)
            throw error(EINVAL, "unknown rank " + std::to_string(one.rank) + ": the job has 0 to " +
                                    std::to_string(ranks - 1));
        if (!seen.insert(one.rank).second)
            throw error(EINVAL, "rank " + std::to_string(one.rank) + " is named twice");
        if (one.host.empty() || one.host.find_first_of(" \t\n/;&|$`'\"\\<>()") != std::string::npos)
            throw error(EINVAL, "not the name of a host: '" + one.host + "'");
        if (one.host[0] == '-')
            throw error(EINVAL, "not the name of a host: '" + one.host + "'");
    }
}

std::string refusal(int code, const std::string &text)
{
    return json{{"ok", false}, {"code", code}, {"error", text}}.dump(
        -1, ' ', false, json::error_handler_t::replace);
}

} // namespace zc::control
