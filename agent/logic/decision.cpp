/* SPDX-License-Identifier: BSD-3-Clause */
#include "decision.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "placement.h"

namespace zc::agent {
namespace {

constexpr double kLongestGuess = 3600;       /* seconds of remaining run we believe in */
constexpr double kTogether = 0.10;           /* a group may cost so much balance to stay whole */
constexpr double kNear = 0.05;               /* fewer ranks are moved if it is nearly as good */
constexpr double kRoomForImage = 1.5;        /* free memory over the image's bytes */
constexpr double kPartOfTimeout = 0.5;       /* for the images; until then the ranks have to meet */
constexpr double kClearlyCheaper = 0.98;     /* else the group stays as it is */
constexpr std::size_t kMostPlaced = 512;     /* ranks; above, groups alone decide */
constexpr std::size_t kMostBelowHolder = 32; /* ranks below zc-hold that leave together */
constexpr int kMostTries = 8;                /* each without the largest rank of the one before */
constexpr double kUnknownWay = 1000;         /* µs per KiB where nothing was measured */

/** Pace of the slower of two nodes after @k ranks went from one to the other. */
double pace_after(const load_digest &from, const load_digest &to, double k, double guests = 0)
{
    double left = from.ranks > k ? pace(from.demand - k, from.cpus, from.speed) : 0;
    double there = pace(to.demand + k + guests, to.cpus, to.speed);
    return from.draining ? there : std::max(left, there);
}

double pace_now(const load_digest &d)
{
    return d.ranks == 0 ? 0 : pace(d.demand, d.cpus, d.speed);
}

/** Where each rank is. */
bool knows_all_places(const job_view &job)
{
    return std::ranges::count(job.placement, kNoNode) == 0;
}

/**
 * Moves what makes the slower of two nodes fastest. Every move must shorten the
 * slower one's iteration by the hysteresis and pay its cost @payback times over in
 * what remains of the run. As both figures come from the two nodes concerned, and
 * as each move lowers the higher of their two paces, moves under constant load end.
 */
class balancing final : public decision {
  public:
    balancing(const settings &s, const profiling &here, const membership &network,
              const grouping &groups, const policy &chosen, const experience &past,
              random_source &random)
        : s_(s), here_(here), candidates_(s, here), network_(network), groups_(groups),
          policy_(chosen), past_(past), random_(random)
    {
    }

    opinion decide(nanos now, const member &thief, std::span<const msg::link> links,
                   const free_check &free) override;
    bool confirm(plan &p, const load_digest &told) override;
    bool worthwhile(const load_digest &thief, const load_digest &victim) const override;

  private:
    struct choice {
        const local_rank *rank;
        double preference;
        std::uint64_t bytes; /* of those that are preferred alike, the one with the least */
    };
    std::vector<choice> choices_of(const job_view &job, const member &thief,
                                   std::span<const msg::link> links, const free_check &free,
                                   std::string &why_not) const;
    opinion decide_among(const std::vector<choice> &choices, const job_view &job,
                         const member &thief, const load_digest &told,
                         std::span<const msg::link> links, plan &p);
    bool is_dear(const plan &p) const;
    void leave_largest(std::vector<choice> &choices, const plan &p) const;
    opinion decide_for(const job_view &job, const member &asking, std::span<const msg::link> links,
                       const free_check &free);
    std::uint32_t how_many(const load_digest &mine, const load_digest &theirs,
                           std::uint32_t most) const;
    std::vector<rank_id> choose(plan &p, const std::vector<choice> &choices, std::uint32_t count,
                                std::uint32_t most, const load_digest &mine) const;
    void rearrange(plan &p, const job_view &job, const std::vector<choice> &choices,
                   std::span<const msg::link> links) const;
    double way(node_id a, node_id b, const member &thief, std::span<const msg::link> links) const;
    void invite(plan &p, const job_view &job, const std::vector<rank_id> &group,
                const load_digest &mine) const;
    balance weigh(const plan &p, const load_digest &mine, const load_digest &target) const;
    bool pays(const balance &b, double part = 1) const;
    double remaining(const plan &p) const;
    double cost_s(const plan &p, std::uint64_t bytes) const;
    bool has_time(const plan &p, std::uint64_t bytes) const;
    std::string explain(const plan &p, const load_digest &mine, const load_digest &theirs) const;

    const settings &s_;
    const profiling &here_;
    const candidates candidates_;
    const membership &network_;
    const grouping &groups_;
    const policy &policy_;
    const experience &past_;
    random_source &random_;
};

opinion balancing::decide(nanos now, const member &thief, std::span<const msg::link> links,
                          const free_check &free)
{
    if (here_.ranks_here() == 0)
        return {{}, "no ranks here"};
    if (!here_.draining() && here_.overloaded_for(now) == 0)
        return {{},
                fmt::format("not overloaded: {:.2f} threads on {:.2f} processors", here_.demand(),
                            here_.load().cpus)};
    if (const auto why = candidates_.why_not_yet(now))
        return {{}, *why};
    if (thief.load.room == 0)
        return {{}, fmt::format("{} is full", thief.host)};

    std::vector<std::pair<std::size_t, const job_view *>> jobs;
    for (const auto &[id, job] : here_.jobs()) {
        auto first = here_.ranks().lower_bound({id, 0});
        auto last = here_.ranks().upper_bound({id, UINT32_MAX});
        jobs.emplace_back(static_cast<std::size_t>(std::distance(first, last)), &job);
    }
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const auto &a, const auto &b) { return a.first > b.first; });
    opinion last{{}, "no job is known here"};
    for (const auto &[count, job] : jobs) {
        if (count == 0)
            continue;
        last = decide_for(*job, thief, links, free);
        if (last.give)
            break;
    }
    return last;
}

opinion balancing::decide_for(const job_view &job, const member &asking,
                              std::span<const msg::link> links, const free_check &free)
{
    /* Paces are in units of a free processor of this node. */
    member thief = asking;
    thief.load = beside(here_.digest(), asking.load);
    std::string why_not;
    std::vector<choice> choices = choices_of(job, thief, links, free, why_not);
    if (choices.empty())
        return {{}, why_not};
    plan p;
    opinion found = decide_among(choices, job, thief, asking.load, links, p);
    /* Each of those below zc-hold moves by itself: without a large one it may be worth it. */
    for (int tried = 1; tried < kMostTries && !found.give && job.transparent && is_dear(p);
         tried++) {
        leave_largest(choices, p);
        if (choices.empty())
            break;
        found = decide_among(choices, job, thief, asking.load, links, p);
    }
    return found;
}

/** For what it would bring it costs too much. */
bool balancing::is_dear(const plan &p) const
{
    return !p.own.empty() && p.figures.gain_s < s_.payback * p.figures.cost_s;
}

/** Of the ranks of @p. */
void balancing::leave_largest(std::vector<choice> &choices, const plan &p) const
{
    auto largest = choices.end();
    for (auto at = choices.begin(); at != choices.end(); ++at) {
        if (std::ranges::count(p.own, at->rank->profile.key.rank) > 0 &&
            (largest == choices.end() || at->bytes > largest->bytes))
            largest = at;
    }
    choices.erase(largest);
}

/** @p: what was decided on, whether it is done or not. @told: by @thief, whose load is beside ours.
 */
opinion balancing::decide_among(const std::vector<choice> &choices, const job_view &job,
                                const member &thief, const load_digest &told,
                                std::span<const msg::link> links, plan &p)
{
    const load_digest mine = beside(here_.digest(), here_.digest());
    auto most = static_cast<std::uint32_t>(
        std::min({choices.size(), std::size_t{thief.load.room}, std::size_t{s_.most_at_once},
                  job.transparent ? kMostBelowHolder : choices.size()}));
    std::uint32_t count = how_many(mine, thief.load, most);
    p = {};
    p.job = job.job;
    p.epoch = job.epoch;
    p.transparent = job.transparent;
    p.target = thief;
    std::vector<rank_id> group = choose(p, choices, count, most, mine);
    if (p.own.empty())
        return {{}, fmt::format("{} has no memory for an image", thief.host)};
    if (!confirm(p, told)) /* before anything that takes time */
        return {{}, p.why};
    if (!job.transparent || knows_all_places(job))
        rearrange(p, job, choices, links);
    if (!job.transparent) /* else an agent knows only of those of its own node */
        invite(p, job, group, mine);
    if (!confirm(p, told))
        return {{}, p.why};
    return {p, ""};
}

/** Those that may go, the preferred first. @why_not: why there is none. */
std::vector<balancing::choice> balancing::choices_of(const job_view &job, const member &thief,
                                                     std::span<const msg::link> links,
                                                     const free_check &free,
                                                     std::string &why_not) const
{
    surroundings around{here_, network_, random_};
    plan alone;
    alone.target = thief;
    alone.transparent = job.transparent;
    const free_check may = [&](const local_rank &rank, node_id target, std::string &reason) {
        if (!free(rank, target, reason))
            return false;
        /* The policy may prefer one that is too large, and all others would stay for it. */
        if (!job.transparent || has_time(alone, rank.profile.image_bytes))
            return true;
        reason = too_long_to_move(s_, cost_s(alone, rank.profile.image_bytes));
        return false;
    };
    const std::vector<const local_rank *> may_go = candidates_.of(job, thief.id, may, why_not);
    const bool have_traffic = std::ranges::any_of(
        may_go, [](const local_rank *rank) { return !rank->profile.flows.empty(); });
    /* A rank below zc-hold with less memory is there sooner, and fails less often for want of it.
     * That is all there is to prefer one by, where no traffic of them is known. */
    std::vector<choice> choices;
    choices.reserve(may_go.size());
    for (const local_rank *rank : may_go)
        choices.push_back(
            {rank, job.transparent && !have_traffic ? 0 : policy_.rank(*rank, thief, links, around),
             job.transparent ? rank->profile.image_bytes : 0});
    std::stable_sort(choices.begin(), choices.end(), [](const choice &a, const choice &b) {
        return std::tuple(-a.preference, a.bytes) < std::tuple(-b.preference, b.bytes);
    });
    return choices;
}

std::uint32_t balancing::how_many(const load_digest &mine, const load_digest &theirs,
                                  std::uint32_t most) const
{
    if (mine.draining)
        return most;
    std::uint32_t best = 1;
    double least = INFINITY;
    for (std::uint32_t k = 1; k <= most; k++)
        least = std::min(least, pace_after(mine, theirs, k));
    /* Nearly as good will do, but not if that is what makes it too little. */
    double before = std::max(pace_now(mine), pace_now(theirs));
    double enough = std::min(least * (1 + kNear), std::max(least, before * (1 - s_.hysteresis)));
    while (best < most && pace_after(mine, theirs, best) > enough)
        best++;
    return best;
}

/** Groups, each led by the most preferred rank left, until @count are chosen. Returns the first. */
std::vector<rank_id> balancing::choose(plan &p, const std::vector<choice> &choices,
                                       std::uint32_t count, std::uint32_t most,
                                       const load_digest &mine) const
{
    std::map<rank_id, const local_rank *> left;
    for (const choice &c : choices)
        left[c.rank->profile.key.rank] = c.rank;
    std::vector<rank_id> first_group;
    auto take = [&](const local_rank &rank) {
        const std::uint64_t bytes = p.bytes + rank.profile.image_bytes;
        /* Each of those below zc-hold moves by itself, so fewer of them can, where all cannot. */
        if (!has_memory(p.target.load.free_bytes, bytes) ||
            (p.transparent && !p.own.empty() && !has_time(p, bytes)))
            return false;
        p.own.push_back(rank.profile.key.rank);
        p.bytes = bytes;
        p.moves = std::max(p.moves, rank.moves);
        return true;
    };
    for (const choice &c : choices) {
        if (p.own.size() >= count)
            break;
        rank_id seed = c.rank->profile.key.rank;
        if (!left.contains(seed))
            continue;
        std::vector<rank_id> group = groups_.around(p.job, seed, s_.most_at_once);
        std::vector<rank_id> here;
        std::copy_if(group.begin(), group.end(), std::back_inserter(here),
                     [&](rank_id r) { return left.contains(r); });
        /* A group that is a little too large for the best balance stays whole. */
        std::size_t room = count - p.own.size();
        if (p.own.empty() && here.size() > room && here.size() <= most && !mine.draining &&
            pace_after(mine, p.target.load, static_cast<double>(here.size())) <=
                pace_after(mine, p.target.load, count) * (1 + kTogether))
            room = here.size();
        if (first_group.empty()) {
            /* Of a whole pattern, those that are here before those that would have to be asked. */
            std::stable_partition(group.begin(), group.end(),
                                  [&](rank_id r) { return left.contains(r); });
            group.resize(std::min<std::size_t>(group.size(), s_.most_at_once));
            first_group = group;
        }
        for (rank_id r : here) {
            if (room == 0)
                break;
            if (take(*left[r]))
                room--;
            left.erase(r);
        }
    }
    return first_group;
}

/** Microseconds that a kilobyte needs, as far as it was measured from here or by the thief. */
double balancing::way(node_id a, node_id b, const member &thief,
                      std::span<const msg::link> links) const
{
    if (a == b)
        return 0;
    auto price = [](float rtt, float bytes_per_us) {
        return rtt / 2 + (bytes_per_us > 0 ? 1024 / bytes_per_us : 10);
    };
    node_id self = network_.self().id;
    if (a == self || b == self) {
        const peer *p = network_.find(a == self ? b : a);
        return p != nullptr && p->rtt_us > 0 ? price(p->rtt_us, p->bytes_per_us) : kUnknownWay;
    }
    if (a == thief.id || b == thief.id) {
        for (const msg::link &l : links) {
            if (l.node == (a == thief.id ? b : a))
                return price(l.rtt_us, l.bytes_per_us);
        }
    }
    return kUnknownWay;
}

/**
 * The same number of ranks, but those whose going leaves the least traffic on the way,
 * if that is clearly less than with the groups: Scotch on the measured network.
 */
void balancing::rearrange(plan &p, const job_view &job, const std::vector<choice> &choices,
                          std::span<const msg::link> links) const
{
    std::size_t ranks = job.placement.size();
    if (ranks > kMostPlaced || p.own.size() >= choices.size())
        return;
    placement_problem problem;
    problem.flows = groups_.expected(p.job);
    if (problem.flows.empty())
        return;
    std::vector<node_id> nodes = {network_.self().id, p.target.id};
    problem.now.resize(ranks);
    problem.fixed.assign(ranks, true);
    for (std::size_t r = 0; r < ranks; r++) {
        auto at = std::find(nodes.begin(), nodes.end(), job.placement[r]);
        if (at == nodes.end())
            at = nodes.insert(nodes.end(), job.placement[r]);
        problem.now[r] = static_cast<std::uint32_t>(at - nodes.begin());
    }
    problem.room.assign(nodes.size(), 0);
    for (std::uint32_t n : problem.now)
        problem.room[n]++;
    problem.room[0] -= static_cast<std::uint32_t>(p.own.size());
    problem.room[1] += static_cast<std::uint32_t>(p.own.size());
    for (const choice &c : choices)
        problem.fixed[c.rank->profile.key.rank] = false;
    for (node_id a : nodes) {
        for (node_id b : nodes)
            problem.cost.push_back(way(a, b, p.target, links));
    }
    std::vector<std::uint32_t> by_groups = problem.now;
    for (rank_id r : p.own)
        by_groups[r] = 1;
    std::vector<std::uint32_t> placed = place(problem);
    if (placed.empty() ||
        placement_cost(problem, placed) >= kClearlyCheaper * placement_cost(problem, by_groups))
        return;
    plan other = p;
    other.own.clear();
    other.bytes = 0;
    other.moves = 0;
    for (const choice &c : choices) {
        rank_id r = c.rank->profile.key.rank;
        if (placed[r] != 1)
            continue;
        other.own.push_back(r);
        other.bytes += c.rank->profile.image_bytes;
        other.moves = std::max(other.moves, c.rank->moves);
    }
    if (has_memory(p.target.load.free_bytes, other.bytes) && has_time(p, other.bytes) &&
        other.own.size() == p.own.size())
        p = std::move(other);
}

/** Members of the group that live elsewhere come too, where that harms no other rank. */
void balancing::invite(plan &p, const job_view &job, const std::vector<rank_id> &group,
                       const load_digest &mine) const
{
    std::set<rank_id> going(p.own.begin(), p.own.end());
    double guests = 0;
    for (rank_id r : group) {
        if (r >= job.placement.size() ||
            static_cast<double>(p.own.size()) + guests + 1 > p.target.load.room)
            continue;
        node_id home = job.placement[r];
        if (home == kNoNode || home == network_.self().id || home == p.target.id)
            continue;
        const peer *there = network_.find(home);
        if (there == nullptr || there->node.state != member_state::alive || going.contains(r))
            continue;
        auto k = static_cast<double>(p.own.size());
        double after = pace_after(mine, p.target.load, k, guests + 1);
        if (after > std::max(pace_after(mine, p.target.load, k, guests),
                             pace_now(beside(here_.digest(), there->node.load))))
            continue;
        going.insert(r);
        p.borrowed[home].push_back(r);
        guests++;
    }
}

double balancing::remaining(const plan &p) const
{
    double longest = 0;
    for (rank_id r : p.own) {
        auto at = here_.ranks().find({p.job, r});
        if (at == here_.ranks().end())
            continue;
        const rank_profile &rank = at->second.profile;
        double left = rank.elapsed_s; /* a process of age t lives another t (Harchol-Balter and
                                         Downey, SIGMETRICS 1996) */
        if (rank.total_iterations > 0 && rank.iterations_per_s > 0)
            left = static_cast<double>(rank.total_iterations -
                                       std::min(rank.iterations, rank.total_iterations)) /
                   rank.iterations_per_s;
        longest = std::max(longest, left);
    }
    return std::min(longest, kLongestGuess);
}

double balancing::cost_s(const plan &p, std::uint64_t bytes) const
{
    return move_cost_s(s_, network_, past_, p, bytes);
}

/** Else it would be given up. */
bool balancing::has_time(const plan &p, std::uint64_t bytes) const
{
    return has_time_to_move(s_, cost_s(p, bytes));
}

/** What the move is worth if @mine is the load here. */
balance balancing::weigh(const plan &p, const load_digest &mine, const load_digest &target) const
{
    auto own = static_cast<double>(p.own.size());
    double guests = 0;
    for (const auto &[home, ranks] : p.borrowed)
        guests += static_cast<double>(ranks.size());
    balance b;
    double there = target.ranks == 0 ? 0 : pace(target.demand, target.cpus, target.speed);
    b.before = mine.draining ? INFINITY : std::max(pace_now(mine), there);
    b.after = pace_after(mine, target, own, guests);
    b.remaining_s = remaining(p);
    b.cost_s = cost_s(p, p.bytes);
    b.gain_s = mine.draining ? INFINITY : b.remaining_s * (1 - b.after / b.before);
    return b;
}

/** @part: of what is demanded. */
bool balancing::pays(const balance &b, double part) const
{
    return b.after <= b.before * (1 - part * s_.hysteresis) &&
           b.gain_s >= part * s_.payback * b.cost_s;
}

bool balancing::confirm(plan &p, const load_digest &told)
{
    const load_digest mine = beside(here_.digest(), here_.digest());
    const load_digest target = beside(here_.digest(), told);
    std::size_t wanted = p.all().size();
    p.figures = weigh(p, mine, target);
    p.why = explain(p, mine, target);
    if (target.room < wanted) {
        p.why =
            fmt::format("{} is full: room for {}, {} wanted", p.target.host, target.room, wanted);
        return false;
    }
    if (!has_memory(target.free_bytes, p.bytes)) {
        p.why = fmt::format("{} has {} MiB of memory, the images need {} MiB", p.target.host,
                            target.free_bytes >> 20, p.bytes >> 20);
        return false;
    }
    if (!pays(p.figures))
        return false;
    if (!has_time(p, p.bytes)) {
        p.why = too_long_to_move(s_, p.figures.cost_s);
        return false;
    }
    /* How many ranks is a question for what others want now: while that rises, its least would move
     * them one by one. Whether to move any is one for what has lasted; the least of what varies a
     * little is below its mean, so half of the gain will do. */
    const load_digest lasting = beside(here_.digest(), here_.lasting());
    if (pays(weigh(p, lasting, target), 0.5))
        return true;
    p.why += fmt::format("; but only {:.2f} threads have been here for {:.1f} s", lasting.demand,
                         to_seconds(s_.settle));
    return false;
}

std::string balancing::explain(const plan &p, const load_digest &mine,
                               const load_digest &theirs) const
{
    const balance &b = p.figures;
    std::string text = fmt::format(
        "{} of {} ranks to {}: {:.2f} threads on {:.2f} processors here, {:.2f} on {:.2f} there; ",
        p.own.size(), mine.ranks, p.target.host, mine.demand, mine.cpus, theirs.demand,
        theirs.cpus);
    if (theirs.speed != 1)
        text += fmt::format("these are {:.2f} times as fast; ", theirs.speed);
    if (mine.draining)
        text += "this node is being emptied";
    else
        text += fmt::format("the slower of the two goes from {:.2f} to {:.2f} times the time of a "
                            "free processor; gains {:.1f} s of the {:.1f} s that remain",
                            b.before, b.after, b.gain_s, b.remaining_s);
    text += fmt::format("; costs {:.1f} s ({:.1f} MiB)", b.cost_s,
                        static_cast<double>(p.bytes) / (1 << 20));
    if (!p.borrowed.empty())
        text += ", and their partners from elsewhere come too";
    if (!mine.draining && b.after > b.before * (1 - s_.hysteresis))
        text += fmt::format("; less than the hysteresis of {:.0f} %", 100 * s_.hysteresis);
    else if (b.gain_s < s_.payback * b.cost_s)
        text += fmt::format("; does not pay {:.1f} times over", s_.payback);
    return text;
}

bool balancing::worthwhile(const load_digest &thief, const load_digest &victim) const
{
    if (thief.room == 0 || thief.draining || victim.ranks == 0)
        return false;
    if (victim.draining)
        return true;
    if (pace_now(victim) * victim.speed <= 1 + s_.hysteresis)
        return false;
    /* The number that makes both equally slow, or one beside it, is the best there is. */
    double mine = victim.cpus * victim.speed;
    double theirs = thief.cpus * thief.speed;
    double equal = (victim.demand * theirs - thief.demand * mine) / std::max(mine + theirs, 1e-3);
    double most = std::min(victim.ranks, thief.room);
    double before = std::max(pace_now(victim), pace_now(thief));
    double after = std::min(pace_after(victim, thief, std::clamp(std::floor(equal), 1.0, most)),
                            pace_after(victim, thief, std::clamp(std::ceil(equal), 1.0, most)));
    return after <= before * (1 - s_.hysteresis);
}

} // namespace

std::vector<rank_id> plan::all() const
{
    std::vector<rank_id> ranks = own;
    for (const auto &[home, theirs] : borrowed)
        ranks.insert(ranks.end(), theirs.begin(), theirs.end());
    return ranks;
}

std::unique_ptr<decision> make_balancing_decision(const settings &s, const profiling &here,
                                                  const membership &network, const grouping &groups,
                                                  const policy &chosen, const experience &past,
                                                  random_source &random)
{
    return std::make_unique<balancing>(s, here, network, groups, chosen, past, random);
}

double move_cost_s(const settings &s, const membership &network, const experience &past,
                   const plan &p, std::uint64_t bytes)
{
    const peer *target = network.find(p.target.id);
    double rate =
        target != nullptr && target->bytes_per_us > 0 ? target->bytes_per_us * 1e6 : s.bandwidth;
    return past.spawn_s(p.transparent) + static_cast<double>(bytes) / rate;
}

bool has_time_to_move(const settings &s, double cost_s)
{
    return cost_s <= kPartOfTimeout * to_seconds(s.move_timeout);
}

std::string too_long_to_move(const settings &s, double cost_s)
{
    return fmt::format("would take some {:.0f} s, and after {:.0f} s a move is given up "
                       "(protocol.move_timeout)",
                       cost_s, to_seconds(s.move_timeout));
}

bool has_memory(std::uint64_t free_bytes, std::uint64_t image_bytes)
{
    return free_bytes == 0 ||
           static_cast<double>(image_bytes) * kRoomForImage <= static_cast<double>(free_bytes);
}

} // namespace zc::agent
