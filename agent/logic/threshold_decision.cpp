/* SPDX-License-Identifier: BSD-3-Clause */
#include "decision.h"

#include <algorithm>

#include <fmt/format.h>

namespace zc::agent {
namespace {

/** The part of a processor that each thread of a node has. */
double available(const load_digest &d)
{
    return std::min(1.0, d.cpus / std::max<double>(d.demand, 1e-3));
}

/**
 * The decision of El Maghraoui et al.: when a node's available resources fall below a threshold, it
 * gives one process to the node that asks. Nothing is asked about what that brings or costs, and no
 * group goes along. It is there to be compared with; a threshold alone moves to and fro.
 */
class by_threshold final : public decision {
  public:
    by_threshold(const settings &s, const profiling &here, const membership &network,
                 const policy &chosen, const experience &past, random_source &random)
        : s_(s), here_(here), candidates_(s, here), network_(network), policy_(chosen), past_(past),
          random_(random)
    {
    }

    opinion decide(nanos now, const member &thief, std::span<const msg::link> links,
                   const free_check &free) override;
    bool confirm(plan &p, const load_digest &told) override;
    bool worthwhile(const load_digest &thief, const load_digest &victim) const override;

  private:
    bool is_below(const load_digest &d) const
    {
        return d.draining || (d.ranks > 0 && available(d) < s_.threshold);
    }
    opinion give_of(const job_view &job, const member &thief, std::span<const msg::link> links,
                    const free_check &free);

    const settings &s_;
    const profiling &here_;
    const candidates candidates_;
    const membership &network_;
    const policy &policy_;
    const experience &past_;
    random_source &random_;
};

opinion by_threshold::decide(nanos now, const member &thief, std::span<const msg::link> links,
                             const free_check &free)
{
    const load_digest mine = here_.digest();
    if (here_.ranks_here() == 0)
        return {{}, "no ranks here"};
    if (!is_below(mine))
        return {{},
                fmt::format("not below the threshold: {:.2f} threads on {:.2f} processors",
                            mine.demand, mine.cpus)};
    if (const auto why = candidates_.why_not_yet(now))
        return {{}, *why};
    opinion last{{}, "no job is known here"};
    for (const auto &[id, job] : here_.jobs()) {
        last = give_of(job, thief, links, free);
        if (last.give)
            break;
    }
    return last;
}

/** The rank that the policy prefers, alone. */
opinion by_threshold::give_of(const job_view &job, const member &thief,
                              std::span<const msg::link> links, const free_check &free)
{
    surroundings around{here_, network_, random_};
    const local_rank *best = nullptr;
    double most = 0;
    std::string why_not;
    for (const local_rank *rank : candidates_.of(job, thief.id, free, why_not)) {
        const double preference = policy_.rank(*rank, thief, links, around);
        if (best == nullptr || preference > most) {
            best = rank;
            most = preference;
        }
    }
    if (best == nullptr)
        return {{}, why_not};
    plan p;
    p.job = job.job;
    p.epoch = job.epoch;
    p.transparent = job.transparent;
    p.target = thief;
    p.own = {best->profile.key.rank};
    p.bytes = best->profile.image_bytes;
    p.moves = best->moves;
    if (!confirm(p, thief.load))
        return {{}, p.why};
    return {p, ""};
}

bool by_threshold::confirm(plan &p, const load_digest &told)
{
    const load_digest mine = here_.digest();
    p.figures = {};
    p.figures.cost_s = move_cost_s(s_, network_, past_, p, p.bytes);
    p.why = fmt::format("rank {} to {}: {:.2f} threads on {:.2f} processors here, {:.2f} on {:.2f} "
                        "there; the threshold is {:.2f} processors for each thread",
                        p.own.front(), p.target.host, mine.demand, mine.cpus, told.demand,
                        told.cpus, s_.threshold);
    const auto refuse = [&p](std::string why) {
        p.why = std::move(why);
        return false;
    };
    if (told.room == 0)
        return refuse(fmt::format("{} is full", p.target.host));
    /* A node that is emptied keeps nothing because all others are busy. */
    if (told.draining || (!mine.draining && available(told) < s_.threshold))
        return refuse(fmt::format("{} is below the threshold itself", p.target.host));
    if (!has_memory(told.free_bytes, p.bytes))
        return refuse(fmt::format("{} has no memory for an image", p.target.host));
    if (!has_time_to_move(s_, p.figures.cost_s))
        return refuse(too_long_to_move(s_, p.figures.cost_s));
    return is_below(mine) || refuse("this node is no longer below the threshold");
}

bool by_threshold::worthwhile(const load_digest &thief, const load_digest &victim) const
{
    return thief.room > 0 && !thief.draining && victim.ranks > 0 && is_below(victim) &&
           (victim.draining || available(thief) >= s_.threshold);
}

} // namespace

std::unique_ptr<decision> make_threshold_decision(const settings &s, const profiling &here,
                                                  const membership &network, const policy &chosen,
                                                  const experience &past, random_source &random)
{
    return std::make_unique<by_threshold>(s, here, network, chosen, past, random);
}

} // namespace zc::agent
