/* SPDX-License-Identifier: BSD-3-Clause */
#include "lender.h"

#include <algorithm>

#include <fmt/format.h>

namespace zc::agent::party {

void lender::start(nanos now, const std::optional<saved_state> &saved)
{
    if (!saved)
        return;
    for (const saved_state::lease &l : saved->leases)
        leases_[l.rank] = {l.txn, now + s_.lease, kNoNode};
}

void lender::tick(nanos now, effects &out)
{
    if (std::erase_if(leases_, [&](const auto &l) { return now >= l.second.until; }) > 0)
        out.save = true;
}

nanos lender::due() const
{
    nanos first = kNever;
    for (const auto &[rank, l] : leases_)
        first = std::min(first, l.until);
    return first;
}

void lender::on(nanos now, node_id from, const msg::lend &m, const free_check &free, effects &out)
{
    if (m.txn.decider != from)
        return;
    msg::lent answer{m.txn, false, 0, ""};
    const job_view *job = here_.job(m.job);
    if (s_.act != mode::move && s_.act != mode::observe)
        answer.reason = "lends nothing";
    else if (job == nullptr || job->epoch != m.epoch || job->busy)
        answer.reason = "the job is not as it was";
    for (rank_id rank : m.ranks) {
        if (!answer.reason.empty())
            break;
        auto at = here_.ranks().find({m.job, rank});
        std::string why;
        if (at == here_.ranks().end())
            answer.reason = fmt::format("rank {} is not here", rank);
        else if (!free(at->second, m.target, why))
            answer.reason = fmt::format("rank {} {}", rank, why);
        else
            answer.bytes += at->second.profile.image_bytes;
    }
    if (answer.reason.empty()) {
        answer.granted = true;
        for (rank_id rank : m.ranks)
            leases_[{m.job, rank}] = {m.txn, now + s_.lease, m.target};
        out.save = true;
    }
    out.send.push_back({from, "", std::move(answer)});
}

void lender::on(nanos now, const msg::release &m, effects &out)
{
    std::map<node_id, std::vector<rank_key>> went; /* all of a transaction's are of one job */
    for (auto at = leases_.begin(); at != leases_.end();) {
        if (at->second.txn != m.txn) {
            ++at;
            continue;
        }
        if (m.moved) {
            here_.mark_leaving(now, at->first);
            went[at->second.target].push_back(at->first);
        }
        at = leases_.erase(at);
        out.save = true;
    }
    for (const auto &[target, ranks] : went) {
        departure d{m.txn, ranks.front().job, {}, target};
        for (const rank_key &key : ranks)
            d.ranks.push_back(key.rank);
        out.departed.push_back(std::move(d));
    }
}

bool lender::lent_to(const rank_key &rank, const txn_id &txn) const
{
    auto at = leases_.find(rank);
    return at != leases_.end() && at->second.txn == txn;
}

void lender::save_to(saved_state &state) const
{
    state.leases.clear();
    for (const auto &[rank, l] : leases_)
        state.leases.push_back({l.txn, rank});
}

} // namespace zc::agent::party
