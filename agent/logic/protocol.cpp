/* SPDX-License-Identifier: BSD-3-Clause */
#include "protocol.h"

#include <algorithm>

#include <fmt/format.h>

namespace zc::agent {
namespace {

constexpr nanos kFirstQuery = 5 * kSecond; /* silence of the job before it is asked how it goes */
constexpr nanos kQueryMost = 30 * kSecond;
constexpr nanos kReservation = 30 * kSecond; /* room is kept for so long beyond move_timeout */
constexpr std::size_t kRoutes = 1024;
constexpr std::size_t kNudged = 2;
constexpr std::uint32_t kMostDoublings = 6;

const char *verdict_name(msg::verdict v)
{
    switch (v) {
    case msg::verdict::running:
        return "running";
    case msg::verdict::moved:
        return "moved";
    case msg::verdict::refused:
        return "refused";
    case msg::verdict::failed:
        return "failed";
    case msg::verdict::timed_out:
        return "timed out";
    case msg::verdict::unknown:
        break;
    }
    return "unknown";
}

} // namespace

protocol::protocol(const settings &s, membership &network, profiling &here, decision &decide,
                   const policy &chosen, experience &past, history &log, random_source &random)
    : s_(s), network_(network), here_(here), decision_(decide), policy_(chosen), past_(past),
      history_(log), random_(random), steal_pause_(s.steal_least), nudge_pause_(s.steal_least)
{
}

void protocol::start(nanos now, std::uint64_t incarnation, const std::optional<saved_state> &saved,
                     effects &out)
{
    next_number_ = incarnation; /* so that attempts of two lives never share a number */
    next_look_ =
        now + static_cast<nanos>(random_.below(static_cast<std::uint64_t>(s_.steal_least) + 1));
    if (saved) {
        for (const saved_state::lease &l : saved->leases)
            leases_[l.rank] = {l.txn, now + s_.lease};
        if (saved->asked) {
            /* We do not know what became of it: as if the answer had been lost. */
            attempt a;
            a.txn = saved->asked->ask.txn;
            a.what.job = saved->asked->ask.job;
            a.what.epoch = saved->asked->ask.epoch;
            a.what.target.id = saved->asked->ask.target;
            a.what.target.host = saved->asked->ask.host;
            a.what.own = saved->asked->ask.ranks;
            for (node_id lender : saved->asked->lenders)
                a.what.borrowed[lender] = {};
            a.asked_of = saved->asked->by;
            a.its_life = saved->asked->ask.incarnation;
            a.at = step::moving;
            a.begun = a.asked = now;
            a.query_pause = kSecond;
            a.next_query = now + kSecond;
            attempt_ = std::move(a);
            history_.add(note(now, "resumed", "started anew with a move under way"));
        }
    }
    (void)out;
    schedule(now);
}

record protocol::note(nanos now, std::string what, std::string why) const
{
    record r;
    r.time = now;
    r.what = std::move(what);
    r.why = std::move(why);
    r.from = network_.self().id;
    if (attempt_) {
        const plan &p = attempt_->what;
        r.txn = attempt_->txn;
        r.job = p.job;
        r.ranks = p.all();
        r.to = p.target.id;
        r.to_host = p.target.host;
        r.before = p.figures.before;
        r.after = p.figures.after;
        r.gain_s = p.figures.gain_s;
        r.cost_s = p.figures.cost_s;
        r.bytes = p.bytes;
    }
    return r;
}

std::string protocol::busy_with() const
{
    if (!attempt_)
        return "";
    switch (attempt_->at) {
    case step::reserving:
        return "reserving";
    case step::borrowing:
        return "borrowing";
    case step::moving:
        break;
    }
    return "moving";
}

bool protocol::lent_to(const rank_key &rank, const txn_id &txn) const
{
    auto at = leases_.find(rank);
    return at != leases_.end() && at->second.txn == txn;
}

void protocol::save_to(saved_state &state) const
{
    state.asked.reset();
    if (attempt_ && attempt_->at == step::moving) {
        const plan &p = attempt_->what;
        saved_state::intent i;
        i.ask = {attempt_->txn, attempt_->its_life, p.job,  p.epoch,
                 p.target.id,   p.target.host,      p.all()};
        i.by = attempt_->asked_of;
        for (const auto &[lender, ranks] : p.borrowed)
            i.lenders.push_back(lender);
        state.asked = std::move(i);
    }
    state.leases.clear();
    for (const auto &[rank, l] : leases_)
        state.leases.push_back({l.txn, rank});
}

/* ---- who may be decided on ---------------------------------------------- */

bool protocol::free_rank(nanos now, const local_rank &rank, node_id target, std::string &why) const
{
    const rank_key &key = rank.profile.key;
    if (!rank.profile.movable)
        why = "cannot be moved";
    else if (rank.leaving)
        why = "is on its way";
    else if (now < rank.not_before)
        why =
            fmt::format("may have been lent by an earlier life of this agent, for another {:.0f} s",
                        to_seconds(rank.not_before - now));
    else if (auto at = leases_.find(key); at != leases_.end())
        why = "is lent";
    else if (attempt_ && attempt_->what.job == key.job)
        why = "has a move under way in its job";
    else if (nanos stay = s_.residence
                          << std::min(rank.moves > 0 ? rank.moves - 1 : 0u, kMostDoublings);
             rank.moves > 0 && now - rank.arrived < stay)
        why = fmt::format("came {:.0f} s ago and stays for {:.0f} s",
                          to_seconds(now - rank.arrived), to_seconds(stay));
    else if (rank.came_from != kNobody && rank.came_from == target &&
             now - rank.arrived < s_.memory && !here_.draining())
        why = fmt::format("came from there {:.0f} s ago", to_seconds(now - rank.arrived));
    else
        return true;
    return false;
}

/* ---- the victim decides -------------------------------------------------- */

void protocol::on(nanos now, node_id, const msg::steal &m, effects &out)
{
    if (m.thief.id == network_.self().id || s_.act == mode::off)
        return;
    network_.learn(now, m.thief);
    if (attempt_ || now < next_decision_ || !here_.sampled())
        return forward(now, m, out);
    opinion o = decision_.decide(now, m.thief, m.links,
                                 [&](const local_rank &rank, node_id target, std::string &why) {
                                     return free_rank(now, rank, target, why);
                                 });
    if (o.give)
        return begin(now, std::move(*o.give), out);
    if (here_.overloaded_for(now) > 0) {
        record r = note(now, "refused", o.why);
        r.to = m.thief.id;
        r.to_host = m.thief.host;
        history_.add(std::move(r));
    }
    forward(now, m, out);
}

void protocol::begin(nanos now, plan p, effects &out)
{
    attempt a;
    a.txn = {network_.self().id, ++next_number_};
    a.what = std::move(p);
    a.begun = now;
    msg::reserve r{a.txn, a.what.job, {}, a.what.bytes, a.what.moves};
    for (rank_id rank : a.what.own)
        r.ranks.push_back({rank, network_.self().id});
    for (const auto &[home, ranks] : a.what.borrowed) {
        for (rank_id rank : ranks)
            r.ranks.push_back({rank, home});
    }
    out.send.push_back({a.what.target.id, a.what.target.address, std::move(r)});
    attempt_ = std::move(a);
    history_.add(note(now, "planned", attempt_->what.why));
    schedule(now);
}

void protocol::on(nanos now, node_id from, const msg::reserved &m, effects &out)
{
    if (!attempt_ || attempt_->txn != m.txn || attempt_->at != step::reserving ||
        from != attempt_->what.target.id)
        return;
    if (!m.granted)
        return abandon(now, m.reason.empty() ? "the target refused" : m.reason, out);
    if (!decision_.confirm(attempt_->what, m.load))
        return abandon(now, "on second thoughts: " + attempt_->what.why, out);
    attempt_->free_bytes = m.load.free_bytes;
    borrow(now, out);
}

void protocol::borrow(nanos now, effects &out)
{
    plan &p = attempt_->what;
    if (p.borrowed.empty())
        return ask(now, out);
    attempt_->at = step::borrowing;
    for (const auto &[home, ranks] : p.borrowed) {
        attempt_->waiting_for.insert(home);
        out.send.push_back(
            {home, "", msg::lend{attempt_->txn, p.job, p.epoch, p.target.id, ranks}});
    }
}

void protocol::on(nanos now, node_id from, const msg::lent &m, effects &out)
{
    if (!attempt_ || attempt_->txn != m.txn || attempt_->at != step::borrowing ||
        attempt_->waiting_for.erase(from) == 0)
        return;
    plan &p = attempt_->what;
    if (m.granted && has_memory(attempt_->free_bytes, p.bytes + m.bytes)) {
        p.bytes += m.bytes;
    } else { /* the others go without its ranks */
        p.borrowed.erase(from);
        if (m.granted)
            out.send.push_back({from, "", msg::release{attempt_->txn, false}});
    }
    if (attempt_->waiting_for.empty())
        ask(now, out);
}

void protocol::ask(nanos now, effects &out)
{
    plan &p = attempt_->what;
    if (now - attempt_->begun > s_.commit_window)
        return abandon(now, "took too long to agree", out);
    const job_view *job = here_.job(p.job);
    if (job == nullptr || job->epoch != p.epoch || job->busy)
        return abandon(now, "the job has changed meanwhile", out);
    if (s_.act == mode::observe || job->observe) {
        history_.add(note(now, "would_move", p.why));
        release_all(false, out);
        attempt_.reset();
        pause(now, false);
        return;
    }
    node_id by = gateway(p.job);
    if (by == kNobody || (by != network_.self().id && network_.find(by) == nullptr))
        return abandon(now, "no agent that reaches the job is known", out);
    attempt_->at = step::moving;
    attempt_->asked = now;
    attempt_->asked_of = by;
    attempt_->its_life =
        (by == network_.self().id ? network_.self() : network_.find(by)->who).incarnation;
    attempt_->query_pause = kFirstQuery;
    attempt_->next_query = now + kFirstQuery;
    out.save = true;
    history_.add(note(now, "asked", p.why));
    reach_job(now, out);
    schedule(now);
}

node_id protocol::gateway(job_id job) const
{
    const job_view *view = here_.job(job);
    if (view == nullptr)
        return kNobody;
    if (view->gateway != kNobody)
        return view->gateway;
    /* The job may have ended, so that its view is the last there will be; we need not have known
     * anybody when it was made. */
    const peer *there = network_.find_host(view->gateway_host);
    return there == nullptr ? kNobody : there->who.id;
}

void protocol::reach_job(nanos, effects &out)
{
    const plan &p = attempt_->what;
    node_id by = attempt_->asked_of;
    msg::ask a{attempt_->txn, attempt_->its_life, p.job,  p.epoch,
               p.target.id,   p.target.host,      p.all()};
    if (by == network_.self().id) {
        remember_route(a.txn, by);
        out.ask.push_back(std::move(a));
    } else {
        out.send.push_back({by, "", std::move(a)});
    }
}

void protocol::query_job(nanos now, effects &out)
{
    attempt &a = *attempt_;
    a.query_pause = std::min(2 * a.query_pause, kQueryMost);
    a.next_query = now + a.query_pause;
    node_id by = gateway(a.what.job);
    msg::query q{a.txn, a.what.job};
    if (by == network_.self().id)
        out.query.push_back(q);
    else if (by != kNobody)
        out.send.push_back({by, "", q});
}

/** Is that the agent, in the same life, that has been asked to pass the request on? */
bool protocol::was_asked(node_id agent) const
{
    if (agent != attempt_->asked_of)
        return false;
    const peer *there = network_.find(agent);
    return attempt_->its_life == (agent == network_.self().id ? network_.self().incarnation
                                  : there != nullptr          ? there->who.incarnation
                                                              : 0);
}

void protocol::conclude(nanos now, node_id from, const msg::outcome &m, effects &out)
{
    if (!attempt_ || attempt_->txn != m.txn || attempt_->at != step::moving)
        return;
    plan &p = attempt_->what;
    if (m.what == msg::verdict::running)
        return;
    bool moved = m.what == msg::verdict::moved;
    std::string why = m.reason;
    if (m.what == msg::verdict::unknown && !was_asked(from)) {
        /* Whoever was asked may have passed it on, and forgotten: what became of it is seen
         * by the job's next shape, or never. */
        const job_view *job = here_.job(p.job);
        if (job == nullptr || job->epoch <= p.epoch)
            return;
        moved = std::all_of(p.own.begin(), p.own.end(), [&](rank_id r) {
            return r < job->placement.size() && job->placement[r] == p.target.id;
        });
        why = "the job has taken another shape meanwhile";
    } else if (m.what == msg::verdict::unknown)
        why = "the request did not reach the job";
    else if (m.what == msg::verdict::timed_out && why.empty())
        why = "a rank did not reach a safe point in time; the job goes on as it was";
    record r = note(now, moved ? "moved" : "failed",
                    moved ? p.why : fmt::format("{}: {}", verdict_name(m.what), why));
    r.bytes = m.bytes > 0 ? m.bytes : r.bytes;
    std::copy(std::begin(m.phase_ms), std::end(m.phase_ms), std::begin(r.phase_ms));
    history_.add(std::move(r));
    if (m.what == msg::verdict::moved) {
        past_.learn(m);
        network_.learn_bandwidth(p.target.id, m.bytes, from_seconds(m.phase_ms[3] / 1000));
    }
    if (moved) {
        for (rank_id rank : p.own)
            here_.mark_leaving(now, {p.job, rank});
    }
    release_all(moved, out);
    attempt_.reset();
    out.save = true;
    pause(now, moved);
    schedule(now);
}

void protocol::abandon(nanos now, const std::string &why, effects &out)
{
    history_.add(note(now, "aborted", why));
    bool asked = attempt_->at == step::moving;
    release_all(false, out);
    attempt_.reset();
    out.save = out.save || asked;
    pause(now, false);
    schedule(now);
}

void protocol::release_all(bool moved, effects &out)
{
    const plan &p = attempt_->what;
    msg::release r{attempt_->txn, moved};
    out.send.push_back({p.target.id, p.target.address, r});
    for (const auto &[home, ranks] : p.borrowed)
        out.send.push_back({home, "", r});
}

void protocol::pause(nanos now, bool success)
{
    failures_ = success ? 0 : std::min(failures_ + 1, kMostDoublings);
    next_decision_ = now + (s_.settle << (failures_ > 1 ? failures_ - 1 : 0));
    nudge_pause_ = success ? s_.steal_least : nudge_pause_;
}

/* ---- the target ----------------------------------------------------------- */

void protocol::on(nanos now, node_id from, const msg::reserve &m, effects &out)
{
    if (m.txn.decider != from)
        return;
    load_digest load = here_.digest(now);
    msg::reserved answer{m.txn, false, load, ""};
    auto count = static_cast<std::uint32_t>(m.ranks.size());
    if (s_.act == mode::off)
        answer.reason = "takes no ranks";
    else if (load.draining)
        answer.reason = "is being emptied";
    else if (attempt_ && !here_.draining())
        answer.reason = "is giving ranks away itself";
    else if (load.room < count)
        answer.reason = fmt::format("is full: room for {}, {} wanted", load.room, count);
    else
        answer.granted = true;
    if (answer.granted) {
        nanos until = now + kReservation + s_.move_timeout;
        here_.expect(now, m.txn, m.job, m.ranks, m.bytes, m.moves, until);
        reservations_[m.txn] = until;
        steal_pause_ = s_.steal_least;
    }
    out.send.push_back({from, "", std::move(answer)});
}

void protocol::on(nanos now, node_id from, const msg::release &m, effects &out)
{
    if (m.txn.decider != from)
        return;
    here_.expected_over(now, m.txn, m.moved);
    reservations_.erase(m.txn);
    for (auto at = leases_.begin(); at != leases_.end();) {
        if (at->second.txn != m.txn) {
            ++at;
            continue;
        }
        if (m.moved)
            here_.mark_leaving(now, at->first);
        at = leases_.erase(at);
        out.save = true;
    }
    schedule(now);
}

/* ---- the owner of partners ------------------------------------------------- */

void protocol::on(nanos now, node_id from, const msg::lend &m, effects &out)
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
        else if (!free_rank(now, at->second, m.target, why))
            answer.reason = fmt::format("rank {} {}", rank, why);
        else
            answer.bytes += at->second.profile.image_bytes;
    }
    if (answer.reason.empty()) {
        answer.granted = true;
        for (rank_id rank : m.ranks)
            leases_[{m.job, rank}] = {m.txn, now + s_.lease};
        out.save = true;
    }
    out.send.push_back({from, "", std::move(answer)});
    schedule(now);
}

/* ---- the one that reaches the job ------------------------------------------ */

void protocol::remember_route(const txn_id &txn, node_id from)
{
    if (routes_.insert_or_assign(txn, from).second)
        route_order_.push_back(txn);
    if (route_order_.size() > kRoutes) {
        routes_.erase(route_order_.front());
        route_order_.pop_front();
    }
}

void protocol::on(nanos, node_id from, const msg::ask &m, effects &out)
{
    if (m.txn.decider != from)
        return;
    /* What an earlier life of ours has answered is not known in this one. */
    const char *late = closed_.contains(m.txn) ? "came after it was given up"
                       : m.incarnation != network_.self().incarnation
                           ? "was meant for an earlier life of the agent that reaches the job"
                           : nullptr;
    if (late != nullptr) {
        out.send.push_back(
            {from, "", msg::outcome{m.txn, m.job, msg::verdict::refused, 0, 0, {}, late}});
        return;
    }
    remember_route(m.txn, from);
    out.ask.push_back(m);
}

void protocol::on(nanos, node_id from, const msg::query &m, effects &out)
{
    if (m.txn.decider != from)
        return;
    remember_route(m.txn, from);
    out.query.push_back(m);
}

void protocol::on_job(nanos now, const msg::outcome &m, effects &out)
{
    if (m.what == msg::verdict::unknown && closed_.insert(m.txn).second) {
        closed_order_.push_back(m.txn);
        if (closed_order_.size() > kRoutes) {
            closed_.erase(closed_order_.front());
            closed_order_.pop_front();
        }
    }
    node_id decider = m.txn.decider;
    if (decider == network_.self().id)
        conclude(now, decider, m, out);
    else
        out.send.push_back({decider, "", m});
}

void protocol::on(nanos now, node_id from, const msg::outcome &m, effects &out)
{
    conclude(now, from, m, out);
}

/* ---- the thief --------------------------------------------------------------- */

bool protocol::wants(nanos now) const
{
    load_digest mine = here_.digest(now);
    if (s_.act == mode::off || !here_.sampled() || mine.room == 0 || !reservations_.empty())
        return false;
    for (const peer &p : network_.peers()) {
        if (p.who.state == member_state::alive && decision_.worthwhile(mine, p.who.load))
            return true;
    }
    /* Who cannot see everybody asks into the blue, if a rank would have a processor to itself. */
    return network_.peers().size() >= s_.max_members && mine.demand + 1 <= mine.cpus;
}

void protocol::look_for_work(nanos now, effects &out)
{
    if (!wants(now)) {
        steal_pause_ = s_.steal_least;
        next_steal_ = now;
        return;
    }
    if (now < next_steal_)
        return;
    msg::steal m;
    m.packet = random_.next();
    m.thief = network_.self();
    m.thief.load = here_.digest(now);
    m.hops = static_cast<std::uint8_t>(std::min<std::uint32_t>(s_.hops, kMaxVisited));
    m.links = network_.links();
    next_steal_ =
        now + steal_pause_ / 2 +
        static_cast<nanos>(random_.below(static_cast<std::uint64_t>(steal_pause_) / 2 + 1));
    steal_pause_ = std::min(2 * steal_pause_, s_.steal_most);
    forward(now, std::move(m), out);
}

void protocol::forward(nanos, msg::steal m, effects &out)
{
    if (m.hops == 0)
        return;
    m.hops--;
    m.visited.push_back(network_.self().id);
    if (m.visited.size() > kMaxVisited)
        return;
    auto seen = [&](node_id id) {
        return id == m.thief.id ||
               std::find(m.visited.begin(), m.visited.end(), id) != m.visited.end();
    };
    surroundings around{here_, network_, random_};
    const peer *best = nullptr;
    bool best_gives = false;
    double best_preference = 0;
    for (const peer &p : network_.peers()) {
        if (p.who.state != member_state::alive || seen(p.who.id))
            continue;
        bool gives = decision_.worthwhile(m.thief.load, p.who.load);
        if (best != nullptr && gives < best_gives)
            continue;
        double preference = policy_.next_hop(p, m, around);
        if (best == nullptr || gives > best_gives || preference > best_preference) {
            best = &p;
            best_gives = gives;
            best_preference = preference;
        }
    }
    /* With everybody in sight and nobody to take from, the packet has ended. */
    if (best == nullptr || (!best_gives && network_.peers().size() < s_.max_members))
        return;
    out.send.push_back({best->who.id, best->who.address, std::move(m)});
}

void protocol::on(nanos now, node_id, const msg::nudge &m, effects &out)
{
    network_.learn(now, m.sender);
    if (!decision_.worthwhile(here_.digest(now), m.sender.load) || !wants(now))
        return;
    next_steal_ = now;
    look_for_work(now, out);
    schedule(now);
}

void protocol::nudge_thieves(nanos now, effects &out)
{
    if (s_.act == mode::off || attempt_ || now < next_nudge_ || now < next_decision_ ||
        (here_.overloaded_for(now) < s_.settle && !here_.draining()) || here_.ranks_here() == 0)
        return;
    load_digest mine = here_.lasting(now);
    std::vector<const peer *> thieves;
    for (const peer &p : network_.peers()) {
        if (p.who.state == member_state::alive && decision_.worthwhile(p.who.load, mine))
            thieves.push_back(&p);
    }
    std::sort(thieves.begin(), thieves.end(), [](const peer *a, const peer *b) {
        auto level = [](const peer *p) {
            return pace(p->who.load.demand + 1, p->who.load.cpus, p->who.load.speed);
        };
        return std::tuple(level(a), a->who.id) < std::tuple(level(b), b->who.id);
    });
    msg::nudge n{network_.self()};
    n.sender.load = mine;
    for (std::size_t i = 0; i < std::min(thieves.size(), kNudged); i++)
        out.send.push_back({thieves[i]->who.id, thieves[i]->who.address, n});
    next_nudge_ = now + nudge_pause_;
    nudge_pause_ = std::min(2 * nudge_pause_, s_.steal_most);
}

/* ---- time --------------------------------------------------------------------- */

void protocol::tick(nanos now, effects &out)
{
    here_.expire(now);
    if (std::erase_if(leases_, [&](const auto &l) { return now >= l.second.until; }) > 0)
        out.save = true;
    if (attempt_) {
        attempt &a = *attempt_;
        if (a.at != step::moving && now - a.begun >= s_.commit_window)
            abandon(now,
                    a.at == step::reserving ? "no answer from the target"
                                            : "no answer from the owner of a partner",
                    out);
        else if (a.at == step::moving && now - a.asked >= s_.move_timeout)
            abandon(now, "no word from the job", out);
        else if (a.at == step::moving && now - a.asked >= kFirstQuery && here_.sampled() &&
                 here_.job(a.what.job) == nullptr)
            /* Found so after a restart. None of its ranks is here to be decided on twice. */
            abandon(now, "the job has left this node, or has ended", out);
        else if (a.at == step::moving && now >= a.next_query)
            query_job(now, out);
    }
    if (here_.load_generation() != generation_) {
        generation_ = here_.load_generation();
        steal_pause_ = nudge_pause_ = s_.steal_least;
        next_nudge_ = now;
    }
    if (now >= next_look_) {
        std::erase_if(reservations_, [&](const auto &r) {
            return now >= r.second || !network_.alive(r.first.decider);
        });
        look_for_work(now, out);
        nudge_thieves(now, out);
        next_look_ = now + s_.steal_least / 2;
    }
    schedule(now);
}

void protocol::schedule(nanos)
{
    next_ = next_look_;
    for (const auto &[rank, l] : leases_)
        next_ = std::min(next_, l.until);
    if (attempt_) {
        const attempt &a = *attempt_;
        next_ =
            std::min(next_, a.at == step::moving ? std::min(a.next_query, a.asked + s_.move_timeout)
                                                 : a.begun + s_.commit_window);
    }
}

} // namespace zc::agent
