/* SPDX-License-Identifier: BSD-3-Clause */
#include "departures.h"

#include <algorithm>
#include <set>

namespace zc::control {

std::string emptiest(const std::vector<std::string> &hosts, const std::vector<std::string> &host_of)
{
    const auto ranks_on = [&](const std::string &host) {
        return std::count(host_of.begin(), host_of.end(), host);
    };
    const auto found = std::min_element(
        hosts.begin(), hosts.end(),
        [&](const std::string &a, const std::string &b) { return ranks_on(a) < ranks_on(b); });
    return found == hosts.end() ? "" : *found;
}

std::vector<request::target> departures(const std::vector<std::string> &host_of,
                                        const std::string &host, const std::vector<std::string> &to)
{
    std::vector<std::string> hosts = to;
    if (hosts.empty()) {
        const std::set<std::string> all(host_of.begin(), host_of.end());
        hosts.assign(all.begin(), all.end());
    }
    std::erase(hosts, host);
    std::vector<std::string> after = host_of;
    std::vector<request::target> moves;
    for (std::size_t rank = 0; rank < host_of.size(); rank++) {
        if (host_of[rank] != host || hosts.empty())
            continue;
        after[rank] = emptiest(hosts, after);
        moves.push_back({static_cast<int>(rank), after[rank]});
    }
    return moves;
}

} // namespace zc::control
