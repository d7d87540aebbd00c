/* SPDX-License-Identifier: BSD-3-Clause */
#include "victim.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

namespace zc::agent::party {
namespace {

constexpr nanos kFirstQuery = 5 * kSecond; /* silence of the job before it is asked how it goes */
constexpr nanos kQueryMost = 30 * kSecond;
constexpr std::size_t kNudged = 2;

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

victim::victim(const settings &s, membership &network, profiling &here, decision &decide,
               experience &past, history &log)
    : s_(s), network_(network), here_(here), decision_(decide), past_(past), history_(log),
      refusals_(s), nudge_pause_(s.steal_least)
{
}

void victim::start(nanos now, std::uint64_t incarnation, const std::optional<saved_state> &saved)
{
    next_number_ = incarnation; /* so that attempts of two lives never share a number */
    if (saved && saved->asked)
        resume(now, *saved->asked);
}

/** We do not know what became of it: as if the answer had been lost. */
void victim::resume(nanos now, const saved_state::intent &asked)
{
    attempt a;
    a.txn = asked.ask.txn;
    a.what.job = asked.ask.job;
    a.what.epoch = asked.ask.epoch;
    a.what.target.id = asked.ask.target;
    a.what.target.host = asked.ask.host;
    for (const member &m : asked.agents) {
        network_.learn(now, m);
        if (m.id == asked.ask.target)
            a.what.target = m;
    }
    a.what.own = asked.ask.ranks;
    for (node_id lender : asked.lenders)
        a.what.borrowed[lender] = {};
    a.asked_of = asked.by;
    a.its_life = asked.ask.incarnation;
    a.at = step::moving;
    a.begun = a.asked = now;
    a.query_pause = kSecond;
    a.next_query = now + kSecond;
    attempt_ = std::move(a);
    history_.add(note(now, "resumed", "started anew with a move under way"));
}

bool victim::gives(nanos now, const msg::steal &m, const free_check &free, effects &out)
{
    if (attempt_ || now < next_decision_ || !here_.sampled())
        return false;
    opinion o = decision_.decide(now, m.thief, m.links, free);
    if (o.give) {
        begin(now, std::move(*o.give), out);
        return true;
    }
    if (here_.overloaded_for(now) > 0) {
        record r = note(now, "refused", o.why);
        r.to = m.thief.id;
        r.to_host = m.thief.host;
        history_.add(std::move(r));
    }
    return false;
}

void victim::begin(nanos now, plan p, effects &out)
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
}

void victim::on(nanos now, node_id from, const msg::reserved &m, effects &out)
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

void victim::borrow(nanos now, effects &out)
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

void victim::on(nanos now, node_id from, const msg::lent &m, effects &out)
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

void victim::ask(nanos now, effects &out)
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
    node_id by = gateway_of(p.job);
    if (by == kNoNode || (by != network_.self().id && network_.find(by) == nullptr))
        return abandon(now, "no agent that reaches the job is known", out);
    attempt_->at = step::moving;
    attempt_->asked = now;
    attempt_->asked_of = by;
    attempt_->its_life =
        (by == network_.self().id ? network_.self() : network_.find(by)->node).incarnation;
    attempt_->query_pause = kFirstQuery;
    attempt_->next_query = now + kFirstQuery;
    out.save = true;
    history_.add(note(now, "asked", p.why));
    reach_job(out);
}

node_id victim::gateway_of(job_id job) const
{
    const job_view *view = here_.job(job);
    if (view == nullptr)
        return kNoNode;
    if (view->gateway != kNoNode)
        return view->gateway;
    /* The job may have ended, so that its view is the last there will be; no agent need have been
     * known when it was made. */
    const peer *there = network_.find_host(view->gateway_host);
    return there == nullptr ? kNoNode : there->node.id;
}

void victim::reach_job(effects &out)
{
    const plan &p = attempt_->what;
    node_id by = attempt_->asked_of;
    msg::ask a{attempt_->txn, attempt_->its_life, p.job,  p.epoch,
               p.target.id,   p.target.host,      p.all()};
    if (by == network_.self().id)
        out.ask.push_back(std::move(a));
    else
        out.send.push_back({by, "", std::move(a)});
}

void victim::query_job(nanos now, effects &out)
{
    attempt &a = *attempt_;
    a.query_pause = std::min(2 * a.query_pause, kQueryMost);
    a.next_query = now + a.query_pause;
    node_id by = gateway_of(a.what.job);
    msg::query q{a.txn, a.what.job};
    if (by == network_.self().id)
        out.query.push_back(q);
    else if (by != kNoNode)
        out.send.push_back({by, "", q});
}

/** Is that the agent, in the same life, that has been asked to pass the request on? */
bool victim::was_asked(node_id agent) const
{
    if (agent != attempt_->asked_of)
        return false;
    const peer *there = network_.find(agent);
    return attempt_->its_life == (agent == network_.self().id ? network_.self().incarnation
                                  : there != nullptr          ? there->node.incarnation
                                                              : 0);
}

void victim::on(nanos now, node_id from, const msg::outcome &m, effects &out)
{
    if (!attempt_ || attempt_->txn != m.txn || attempt_->at != step::moving)
        return;
    const plan &p = attempt_->what;
    if (m.what == msg::verdict::running)
        return;
    part all{p.all(), m.what, m.reason};
    const job_view *job = here_.job(p.job);
    if (m.what == msg::verdict::unknown && !was_asked(from)) {
        /* The agent that was asked may have passed it on, and forgotten: what became of it is seen
         * by the job's next shape, or never. */
        if (job == nullptr || job->epoch <= p.epoch)
            return;
        const bool moved = std::all_of(p.own.begin(), p.own.end(), [&](rank_id r) {
            return r < job->placement.size() && job->placement[r] == p.target.id;
        });
        all.what = moved ? msg::verdict::moved : all.what;
        all.why = "the job has taken another shape meanwhile";
    } else if (m.what == msg::verdict::unknown) {
        all.why = m.reason.empty() ? "the request did not reach the job" : m.reason;
    } else if ((p.transparent || (job && job->transparent)) && !p.own.empty()) {
        end_move(now, m, learn_of_each(now, m), out);
        pause(now, true); /* what refuses is left alone */
        if (here_.draining())
            next_decision_ = now; /* the next of them */
        return;
    } else if (m.what == msg::verdict::timed_out && m.reason.empty()) {
        all.why = "a rank did not reach a safe point in time; the job goes on as it was";
    }
    end_move(now, m, {all}, out);
    pause(now, all.what == msg::verdict::moved);
}

/** Of the attempt, of which @parts are all ranks. */
void victim::end_move(nanos now, const msg::outcome &m, const std::vector<part> &parts,
                      effects &out)
{
    const plan &p = attempt_->what;
    if (m.what == msg::verdict::moved) {
        past_.learn(m, p.transparent);
        network_.learn_bandwidth(p.target.id, m.bytes, from_seconds(m.phase_ms[3] / 1000));
    }
    departure gone{attempt_->txn, p.job, {}, p.target.id};
    for (const part &one : parts) {
        history_.add(note(now, one, m, parts.size() == 1));
        if (one.what == msg::verdict::moved)
            std::copy_if(one.ranks.begin(), one.ranks.end(), std::back_inserter(gone.ranks),
                         [&](rank_id r) { return std::ranges::count(p.own, r) > 0; });
    }
    for (rank_id rank : gone.ranks)
        here_.mark_leaving(now, {p.job, rank});
    const bool moved = !gone.ranks.empty();
    if (moved)
        out.departed.push_back(std::move(gone));
    release_all(moved, out);
    attempt_.reset();
    out.save = true;
}

/** Of ranks below zc-hold, of which some may have moved, and others not: what is to be said of
 * them, first of those that have. */
std::vector<victim::part> victim::learn_of_each(nanos now, const msg::outcome &m)
{
    const plan &p = attempt_->what;
    std::vector<msg::rank_result> each;
    std::copy_if(m.each.begin(), m.each.end(), std::back_inserter(each),
                 [&](const auto &one) { return std::ranges::count(p.own, one.rank) > 0; });
    if (each.empty()) {
        for (rank_id rank : p.own)
            each.push_back({rank, m.what, m.reason});
    }
    std::stable_partition(each.begin(), each.end(),
                          [](const auto &one) { return one.what == msg::verdict::moved; });
    /* Where some have moved, too: what it cannot take now it is not to be asked to. */
    const auto failed = std::ranges::find(each, msg::verdict::failed, &msg::rank_result::what);
    /* Where all moves hang others may take the ranks. */
    if (std::ranges::all_of(each,
                            [](const auto &one) { return one.what == msg::verdict::timed_out; }))
        refusals_.add(now, p.target.id, each.front().reason);
    std::vector<part> parts;
    for (auto one = each.begin(); one != each.end(); ++one) {
        std::string why = learn_of(now, *one, one == failed);
        auto same = std::ranges::find_if(
            parts, [&](const part &other) { return other.what == one->what && other.why == why; });
        if (same == parts.end())
            same = parts.insert(parts.end(), {{}, one->what, std::move(why)});
        same->ranks.push_back(one->rank);
    }
    return parts;
}

/** @is_first: of those that have failed; the target has done so once. Returns what is to be said.
 */
std::string victim::learn_of(nanos now, const msg::rank_result &one, bool is_first)
{
    const plan &p = attempt_->what;
    const rank_key rank{p.job, one.rank};
    const refusals::entry *blamed = nullptr;
    switch (one.what) {
    case msg::verdict::moved:
        refusals_.forget(rank, p.target.id);
        return p.why;
    case msg::verdict::refused:
        blamed = &refusals_.add(now, rank, one.reason);
        break;
    case msg::verdict::failed:
        blamed =
            is_first ? &refusals_.add(now, p.target.id, one.reason) : refusals_.of(p.target.id);
        break;
    case msg::verdict::unknown: /* it was not asked */
        return one.reason;
    default: /* no answer has come, which is no refusal of the rank: it may leave yet */
        return fmt::format("{}; not again before {:.0f} s", one.reason,
                           to_seconds(refusals_.put_off(now, rank, one.reason).until - now));
    }
    return fmt::format("{}; {} times, and not again before {:.0f} s", one.reason, blamed->times,
                       to_seconds(blamed->until - now));
}

void victim::abandon(nanos now, const std::string &why, effects &out)
{
    history_.add(note(now, "aborted", why));
    bool asked = attempt_->at == step::moving;
    release_all(false, out);
    attempt_.reset();
    out.save = out.save || asked;
    pause(now, false);
}

void victim::release_all(bool moved, effects &out)
{
    const plan &p = attempt_->what;
    msg::release r{attempt_->txn, moved};
    out.send.push_back({p.target.id, p.target.address, r});
    for (const auto &[home, ranks] : p.borrowed)
        out.send.push_back({home, "", r});
}

void victim::pause(nanos now, bool success)
{
    failures_ = success ? 0 : std::min(failures_ + 1, kMostDoublings);
    next_decision_ = now + (s_.settle << (failures_ > 1 ? failures_ - 1 : 0));
    nudge_pause_ = success ? s_.steal_least : nudge_pause_;
}

void victim::nudge_thieves(nanos now, effects &out)
{
    if (s_.act == mode::off || attempt_ || now < next_nudge_ || now < next_decision_ ||
        (here_.overloaded_for(now) < s_.settle && !here_.draining()) || here_.ranks_here() == 0)
        return;
    load_digest mine = here_.lasting();
    std::vector<const peer *> thieves;
    for (const peer &p : network_.peers()) {
        if (p.node.state == member_state::alive && decision_.worthwhile(p.node.load, mine))
            thieves.push_back(&p);
    }
    std::sort(thieves.begin(), thieves.end(), [](const peer *a, const peer *b) {
        auto level = [](const peer *p) {
            return pace(p->node.load.demand + 1, p->node.load.cpus, p->node.load.speed);
        };
        return std::tuple(level(a), a->node.id) < std::tuple(level(b), b->node.id);
    });
    msg::nudge n{network_.self()};
    n.sender.load = mine;
    for (std::size_t i = 0; i < std::min(thieves.size(), kNudged); i++)
        out.send.push_back({thieves[i]->node.id, thieves[i]->node.address, n});
    next_nudge_ = now + nudge_pause_;
    nudge_pause_ = std::min(2 * nudge_pause_, s_.steal_most);
}

void victim::load_changed(nanos now)
{
    nudge_pause_ = s_.steal_least;
    next_nudge_ = now;
}

void victim::tick(nanos now, effects &out)
{
    if (!attempt_)
        return;
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
    else if (a.at == step::moving && now - a.asked >= kFirstQuery && has_left())
        abandon(now, "its ranks have left this node, or have ended", out);
    else if (a.at == step::moving && now >= a.next_query)
        query_job(now, out);
}

/** Of ranks below zc-hold for which an earlier life has asked: no outcome comes, and others of the
 * job may be here, but none of those that may have moved is. */
bool victim::has_left() const
{
    const plan &p = attempt_->what;
    const job_view *job = here_.job(p.job);
    return job && job->transparent && !was_asked(attempt_->asked_of) &&
           std::ranges::none_of(p.own, [&](rank_id rank) {
               return here_.ranks().contains({p.job, rank});
           });
}

nanos victim::due() const
{
    if (!attempt_)
        return kNever;
    const attempt &a = *attempt_;
    return a.at == step::moving ? std::min(a.next_query, a.asked + s_.move_timeout)
                                : a.begun + s_.commit_window;
}

record victim::note(nanos now, std::string what, std::string why) const
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

/** @is_all: no others were in the attempt. */
record victim::note(nanos now, const part &one, const msg::outcome &m, bool is_all) const
{
    const plan &p = attempt_->what;
    const bool moved = one.what == msg::verdict::moved;
    record r = note(now, moved ? "moved" : "failed",
                    moved ? p.why : fmt::format("{}: {}", verdict_name(one.what), one.why));
    r.ranks = one.ranks;
    if (moved || is_all) {
        r.bytes = m.bytes > 0 ? m.bytes : r.bytes;
        std::copy(std::begin(m.phase_ms), std::end(m.phase_ms), std::begin(r.phase_ms));
        return r;
    }
    r.bytes = 0;
    for (rank_id rank : one.ranks) {
        if (auto at = here_.ranks().find({p.job, rank}); at != here_.ranks().end())
            r.bytes += at->second.profile.image_bytes;
    }
    return r;
}

std::string victim::busy_with() const
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

void victim::save_to(saved_state &state) const
{
    state.asked.reset();
    if (!attempt_ || attempt_->at != step::moving)
        return;
    const plan &p = attempt_->what;
    saved_state::intent i;
    i.ask = {attempt_->txn, attempt_->its_life, p.job,  p.epoch,
             p.target.id,   p.target.host,      p.all()};
    i.by = attempt_->asked_of;
    for (const auto &[lender, ranks] : p.borrowed)
        i.lenders.push_back(lender);
    std::set<node_id> concerned(i.lenders.begin(), i.lenders.end());
    concerned.insert({p.target.id, i.by});
    for (node_id id : concerned) {
        if (const peer *there = network_.find(id))
            i.agents.push_back(there->node);
    }
    state.asked = std::move(i);
}

} // namespace zc::agent::party
