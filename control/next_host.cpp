/* SPDX-License-Identifier: BSD-3-Clause */
#include "next_host.h"

#include <algorithm>

#include "error.h"

namespace zc::control {

holder::held_move
move_to_one_of(std::vector<listening_host> hosts, const std::string &job, placement &where,
               departure &leaving,
               const std::function<holder::held_move(const listening_host &)> &move_to)
{
    holder::held_move later;
    for (;;) {
        std::vector<std::string> names;
        names.reserve(hosts.size());
        for (const listening_host &each : hosts)
            names.push_back(each.name);
        const auto host = std::ranges::find(hosts, where.take(job, names), &listening_host::name);
        holder::held_move said;
        try {
            leaving.prepares(); /* all of its memory has to go to this host, too */
            said = move_to(*host);
        } catch (const std::exception &problem) { /* what a peer says may be wrong in any way */
            said.why = reason_of(problem);
        }
        if (!said.ok)
            where.give_back(job, host->name);
        hosts.erase(host);
        if (said.ok || !said.other_host)
            return said;
        if (said.again)
            later = said;
        if (hosts.empty())
            return later.again ? later : said;
    }
}

} // namespace zc::control
