/* SPDX-License-Identifier: BSD-3-Clause */
#include "neighbours.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "error.h"

namespace zc::migrate {

namespace {

constexpr double kCall = 5; /* seconds for a launcher to answer; then it is not relied on */

/** Those by which others reach the host of @launcher. */
std::set<std::string> addresses_of(const calling_card &launcher)
{
    std::set<std::string> all;
    for (const std::string &place : launcher.addresses)
        if (std::string address = place.substr(0, place.rfind('/')); !is_loopback(address))
            all.insert(std::move(address));
    return all;
}

} // namespace

void neighbours::set(std::vector<neighbour> all)
{
    const std::lock_guard lock(mutex_);
    all_ = std::move(all);
}

std::optional<calling_card> neighbours::on(const std::string &host,
                                           const name_service &service) const
{
    std::vector<neighbour> all;
    {
        const std::lock_guard lock(mutex_);
        std::ranges::copy_if(all_, std::back_inserter(all), [this](const neighbour &one) {
            return !silent_.contains(one.launcher.key);
        });
    }
    std::set<std::string> looked_up;
    const auto is_there = [&](const neighbour &one) {
        const std::set<std::string> own = addresses_of(one.launcher);
        return one.host == host || own.contains(host) ||
               std::ranges::any_of(looked_up, [&](const auto &it) { return own.contains(it); });
    };
    auto found = std::ranges::find_if(all, is_there);
    if (found == all.end() && !all.empty()) {
        looked_up = service.addresses_of(host);
        found = std::ranges::find_if(all, is_there);
    }
    if (found == all.end())
        return std::nullopt;
    /* An address of a bridge that each host has, or a name that several have. */
    const std::set<std::string> whose = addresses_of(found->launcher);
    const bool is_one = std::all_of(found, all.end(), [&](const neighbour &one) {
        return !is_there(one) || addresses_of(one.launcher) == whose;
    });
    return is_one ? std::optional(found->launcher) : std::nullopt;
}

std::unique_ptr<wire> neighbours::call_on(const std::string &host, std::string &problem)
{
    const std::optional<calling_card> card = on(host);
    if (!card)
        return nullptr;
    try {
        return call(*card, kStartCall, kCall);
    } catch (const error &reason) {
        /* Its last rank may just have left, too. */
        problem = "the launcher on " + host + " is not used any more: it " + reason.what();
        const std::lock_guard lock(mutex_);
        silent_.insert(card->key);
        return nullptr;
    }
}

std::string launch_by_neighbour::ask(const std::string &host,
                                     const std::vector<calling_card> &leavers)
{
    std::unique_ptr<wire> &line = there_[host];
    nlohmann::json cards = nlohmann::json::array();
    for (const calling_card &one : leavers)
        cards.push_back(one.to_text());
    if (line && line->send({{"leavers", cards}})) {
        leavers_[host] = leavers;
        return "";
    }
    line.reset();
    return others_.ask(host, leavers);
}

bool launch_by_neighbour::answer(const std::string &host, std::string &problem)
{
    std::unique_ptr<wire> &line = there_[host];
    if (!line)
        return others_.answer(host, problem);
    if (const auto said = line->poll()) {
        problem = said->value("problem", "");
        return true;
    }
    if (!line->is_closed())
        return false;
    line.reset();
    problem = others_.ask(host, leavers_[host]);
    return !problem.empty();
}

std::string launch_by_neighbour::is_late(const std::string &host) const
{
    const auto line = there_.find(host);
    return line != there_.end() && line->second ? "the one that ranks have there does not answer"
                                                : others_.is_late(host);
}

} // namespace zc::migrate
