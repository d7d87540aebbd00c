/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace zc::agent::sim {
namespace {

constexpr std::uint32_t kRack = 16;
constexpr double kIteration = 0.1;     /* seconds at pace 1 */
constexpr std::uint32_t kPartners = 4; /* ranks talk within groups of so many */
constexpr std::size_t kMostViolations = 20;
constexpr std::size_t kGroupingBytes =
    96 << 10; /* its jobs are small; 10,000 agents have many of them */
constexpr std::uint32_t kPhaseRanks = 4;
constexpr int kPhaseMessages = 10;        /* per second and rank */
constexpr double kAtTheEnd = 2;           /* seconds: a move takes about as long */
constexpr double kNoise = 0.3;            /* threads by which a sample may be wrong */
constexpr std::uint32_t kMovesInCalm = 3; /* of one rank; more is oscillation */

node_id id_of(std::uint32_t n)
{
    return node_id{n} + 1;
}

std::string host_of(std::uint32_t n)
{
    return fmt::format("h{}", n);
}

std::string address_of(std::uint32_t n)
{
    return fmt::format("sim:{}", n);
}

} // namespace

simulation::simulation(options o) : o_(std::move(o)), random_(o_.seed)
{
    build();
}

simulation::~simulation() = default;

nanos simulation::local(std::uint32_t n, nanos at) const
{
    return nodes_[n].offset + static_cast<nanos>(static_cast<double>(at) * (1 + nodes_[n].drift));
}

nanos simulation::global(std::uint32_t n, nanos at) const
{
    return static_cast<nanos>(
        std::ceil(static_cast<double>(at - nodes_[n].offset) / (1 + nodes_[n].drift)));
}

void simulation::push(nanos at, kind what, std::uint32_t n, std::uint64_t extra, std::string bytes)
{
    queue_.push_back({at, ++order_, what, n, extra, std::move(bytes)});
    std::push_heap(queue_.begin(), queue_.end());
}

/** A third of the nodes idle, a third as it should be, a third with too much. */
void simulation::build()
{
    end_ = from_seconds(o_.seconds);
    calm_from_ = from_seconds(o_.seconds * (1 - o_.calm));
    nodes_.resize(o_.nodes);
    for (std::uint32_t n = 0; n < o_.nodes; n++) {
        node &it = nodes_[n];
        it.rack = n / kRack;
        it.disk = to_text(saved_state{}); /* nobody has forgotten anything yet */
        it.drift = o_.skew * (2 * random_.unit() - 1);
        it.offset = o_.skew > 0 ? static_cast<nanos>(random_.below(1'000'000)) * kSecond : 0;
        push(static_cast<nanos>(random_.below(kSecond)), kind::start, n);
        push(static_cast<nanos>(kSecond + random_.below(kSecond)), kind::sample, n);
    }
    if (o_.phase_a > 0)
        return build_phases();
    /* Jobs on stretches of nodes, each stretch with its own degree of overload. */
    std::uint32_t n = 0;
    job_id next = 1;
    while (n < o_.nodes) {
        auto stretch = static_cast<std::uint32_t>(2 + random_.below(6));
        stretch = std::min(stretch, o_.nodes - n);
        std::uint64_t fate = o_.balanced ? 1 : (n == 0 ? 2 : random_.below(3));
        auto per_node = static_cast<std::uint32_t>(fate == 0   ? 0
                                                   : fate == 1 ? 4
                                                               : 5 + random_.below(6));
        if (!o_.balanced && fate == 2 && o_.nodes >= 2)
            stretch = std::min(stretch, std::max(1u, o_.nodes / 2));
        if (per_node > 0) {
            job &j = jobs_[next];
            j.image = (1 + random_.below(64)) << 20;
            j.total = random_.chance(0.5) ? 20'000 + random_.below(20'000) : 0;
            for (std::uint32_t k = 0; k < stretch * per_node; k++) {
                j.where.push_back(n + k / per_node);
                nodes_[n + k / per_node].ranks.insert({next, k});
            }
            next++;
        }
        for (std::uint32_t k = 0; k < stretch && !o_.balanced; k++) {
            if (random_.chance(0.2) && fate > 0)
                nodes_[n + k].others = static_cast<double>(1 + random_.below(4));
        }
        n += stretch;
    }
    auto sometime = [&](double from, double to) {
        return static_cast<nanos>((from + (to - from) * random_.unit()) *
                                  static_cast<double>(calm_from_));
    };
    for (std::uint32_t i = 0; i < o_.partitions; i++)
        push(sometime(0.1, 0.9), kind::cut, 0);
    for (std::uint32_t i = 0; i < o_.churn; i++)
        push(sometime(0.05, 0.7), kind::go, static_cast<std::uint32_t>(random_.below(o_.nodes)));
    for (std::uint32_t i = 0; i < o_.load_changes; i++)
        push(sometime(0.05, 0.95), kind::change,
             static_cast<std::uint32_t>(random_.below(o_.nodes)));
}

void simulation::build_phases()
{
    double cycle = o_.phase_a + o_.phase_b;
    for (std::uint32_t n = 0; n + 1 < o_.nodes; n += 2) {
        job_id id = n / 2 + 1;
        job &j = jobs_[id];
        j.image = std::uint64_t{8} << 20;
        for (rank_id k = 0; k < kPhaseRanks; k++) {
            j.where.push_back(n);
            nodes_[n].ranks.insert({id, k});
            j.seat.push_back(k);
        }
        for (rank_id k = kPhaseRanks - 1; k > 0; k--)
            std::swap(j.seat[k], j.seat[random_.below(k + 1)]);
        nodes_[n + 1].cpus = 2;
        auto cycles =
            static_cast<std::uint64_t>(std::max(1.0, o_.seconds * (1 - o_.calm) / cycle / 2));
        double when =
            (static_cast<double>(cycles + random_.below(cycles)) + random_.unit()) * cycle;
        push(from_seconds(when), kind::others_come, n);
    }
}

/** @before_end: and not longer than this before its end; 0: wherever. */
bool simulation::in_phase_a(nanos at, double before_end) const
{
    double place = std::fmod(to_seconds(at), o_.phase_a + o_.phase_b);
    return place < o_.phase_a && (before_end <= 0 || place >= o_.phase_a - before_end);
}

rank_id simulation::partner(const job &j, rank_id rank, nanos at) const
{
    rank_id other = j.seat[rank] ^ (in_phase_a(at, 0) ? 2u : 1u);
    return static_cast<rank_id>(std::find(j.seat.begin(), j.seat.end(), other) - j.seat.begin());
}

/** What the rank has sent within the last second; completes its profile. */
std::vector<zcp_event_t> simulation::traffic(job &j, rank_profile &p, std::uint32_t n) const
{
    std::vector<zcp_event_t> events;
    rank_id self = p.key.rank;
    if (o_.phase_a > 0) {
        p.flows.push_back({partner(j, self, now_), 1e6, kPhaseMessages});
        for (int i = kPhaseMessages - 1; i >= 0; i--) {
            nanos at = now_ - i * (kSecond / kPhaseMessages);
            if (at < 0)
                continue;
            rank_id other = partner(j, self, at);
            events.push_back({self, other, 100'000, static_cast<std::uint64_t>(at), 0, 0});
            if (!j.at_the_end)
                continue;
            j.after.bytes += 100'000;
            j.after.across += j.where[other] != n ? 100'000 : 0;
        }
        return events;
    }
    rank_id first = self / kPartners * kPartners;
    for (rank_id other = first; other < std::min<std::size_t>(first + kPartners, j.where.size());
         other++) {
        if (other == self)
            continue;
        p.flows.push_back({other, 1e6, 10});
        events.push_back({self, other, 100'000, static_cast<std::uint64_t>(now_), 0, 0});
    }
    return events;
}

double simulation::node_pace(std::uint32_t n) const
{
    const node &it = nodes_[n];
    return pace(it.others + static_cast<double>(it.ranks.size()), it.cpus, it.speed);
}

double simulation::true_pace(const job &j) const
{
    double slowest = 0;
    for (std::uint32_t n : j.where)
        slowest = std::max(slowest, node_pace(n));
    return slowest;
}

balance_sheet simulation::measure() const
{
    balance_sheet now;
    double sum = 0, squares = 0;
    for (const node &it : nodes_) {
        double load = (it.others + static_cast<double>(it.ranks.size())) / it.cpus;
        sum += load;
        squares += load * load;
    }
    auto count = static_cast<double>(nodes_.size());
    now.imbalance = std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count)));
    for (const auto &[id, j] : jobs_) {
        double p = true_pace(j);
        now.mean += p / static_cast<double>(jobs_.size());
        now.worst = std::max(now.worst, p);
    }
    return now;
}

void simulation::violated(std::string text)
{
    if (result_.violations.size() < kMostViolations)
        result_.violations.push_back(fmt::format("{:.3f} s: {}", to_seconds(now_), text));
}

result simulation::run()
{
    result_.before = measure();
    while (!queue_.empty() && queue_.front().at <= end_) {
        std::pop_heap(queue_.begin(), queue_.end());
        event e = std::move(queue_.back());
        queue_.pop_back();
        now_ = e.at;
        result_.events++;
        handle(e);
    }
    result_.after = measure();
    for (const auto &[id, j] : jobs_) {
        if (!j.at_the_end)
            continue;
        traffic_after &sum = *j.at_the_end ? result_.at_the_end : result_.otherwise;
        sum.jobs++;
        sum.bytes += j.after.bytes;
        sum.across += j.after.across;
    }
    bool constant = o_.load_changes == 0 && o_.phase_a == 0;
    auto grew = [&](const char *what, double balance_sheet::*which) {
        if (constant && result_.after.*which > result_.before.*which * 1.001)
            violated(fmt::format("{} grew from {:.3f} to {:.3f}", what, result_.before.*which,
                                 result_.after.*which));
    };
    grew("imbalance", &balance_sheet::imbalance);
    grew("the slowest job's pace", &balance_sheet::worst);
    if (from_seconds(o_.seconds * (1 - o_.calm / 4)) <
        static_cast<nanos>(result_.last_move_ms) * kMillisecond)
        violated(fmt::format("not quiet: a move at {:.1f} s, in the last quarter of the calm",
                             static_cast<double>(result_.last_move_ms) / 1000));
    /* Seekers ask every steal_most at the slowest, each packet over all its hops. */
    double allowed = static_cast<double>(o_.nodes) * (o_.agents.hops + 1.0) *
                     (1 + o_.seconds * o_.calm / 4 / to_seconds(o_.agents.steal_most) * 2);
    if (static_cast<double>(result_.steals_in_calm) > allowed)
        violated(fmt::format("not quiet: {} steal packets in the last quarter of the calm",
                             result_.steals_in_calm));
    return result_;
}

void simulation::handle(event &e)
{
    std::uint32_t n = e.node;
    switch (e.what) {
    case kind::start:
    case kind::restart:
    case kind::come:
        if (!nodes_[n].up)
            boot(n);
        break;
    case kind::wake:
        if (!nodes_[n].up || nodes_[n].wake_at != e.at)
            break;
        nodes_[n].wake_at = kNever;
        apply(n, nodes_[n].mind->on_time(local(n, now_)));
        break;
    case kind::sample:
        push(now_ + kSecond, kind::sample, n);
        if (nodes_[n].up)
            sample(n);
        break;
    case kind::deliver: {
        if (!nodes_[n].up)
            break;
        message m;
        flaw f = nodes_[n].door->admit(e.bytes, now_, m);
        if (f == flaw::none)
            apply(n, nodes_[n].mind->on_message(local(n, now_), m));
        else if (f != flaw::replayed && f != flaw::old_incarnation)
            violated(fmt::format("a message of an agent was refused: {}", flaw_name(f)));
        break;
    }
    case kind::job_done:
        job_done(e.extra);
        break;
    case kind::cut:
        cut_ = true;
        for (node &it : nodes_)
            it.side = static_cast<int>(random_.below(2));
        push(now_ + 10 * kSecond, kind::heal, 0);
        break;
    case kind::heal:
        cut_ = false;
        break;
    case kind::go:
        if (nodes_[n].up && nodes_[n].ranks.empty()) {
            apply(n, nodes_[n].mind->leave());
            nodes_[n].up = false;
            nodes_[n].mind.reset();
            push(now_ + 5 * kSecond + static_cast<nanos>(random_.below(20 * kSecond)), kind::come,
                 n);
        }
        break;
    case kind::change:
        nodes_[n].others = static_cast<double>(random_.below(8));
        break;
    case kind::others_come:
        nodes_[n].others = 2;
        break;
    }
}

void simulation::boot(std::uint32_t n)
{
    node &it = nodes_[n];
    settings s = o_.agents;
    s.grouping_bytes = kGroupingBytes;
    for (int i = 0; i < 3; i++)
        s.seeds.push_back(address_of(static_cast<std::uint32_t>(random_.below(o_.nodes))));
    member self;
    self.id = id_of(n);
    self.host = host_of(n);
    self.address = address_of(n);
    std::optional<saved_state> saved;
    if (!it.disk.empty())
        saved = from_text(it.disk);
    it.lives++;
    std::uint64_t incarnation = std::max<std::uint64_t>(static_cast<std::uint64_t>(now_) + it.lives,
                                                        saved ? saved->incarnation + 1 : 1);
    it.mind = std::make_unique<agent>(s, self, incarnation, random_.next());
    it.door = std::make_unique<admission>(self.id);
    it.sequence = 0;
    it.up = true;
    it.wake_at = kNever;
    apply(n, it.mind->start(local(n, now_), saved));
    if (it.up)
        schedule(n);
}

void simulation::crash(std::uint32_t n)
{
    node &it = nodes_[n];
    it.up = false;
    it.past.clear();
    result_.crashes++;
    if (random_.chance(o_.lose_state))
        it.disk.clear();
    push(now_ + kSecond + static_cast<nanos>(random_.below(20 * kSecond)), kind::restart, n);
}

void simulation::schedule(std::uint32_t n)
{
    node &it = nodes_[n];
    nanos at = std::max(now_ + 1, global(n, it.mind->due()));
    if (at == it.wake_at)
        return;
    it.wake_at = at;
    push(at, kind::wake, n);
}

/** What zcmd reads from the kernel and from the ranks, once a second. */
void simulation::sample(std::uint32_t n)
{
    node &it = nodes_[n];
    nanos at = local(n, now_);
    load_sample load;
    load.cpus = it.cpus;
    load.speed = it.speed;
    load.demand = std::max(0.0, it.others + static_cast<double>(it.ranks.size()) +
                                    2 * kNoise * (random_.unit() - 0.5));
    load.free_bytes = std::uint64_t{16} << 30;
    std::vector<rank_key> gone;
    for (const auto &[key, rank] : it.mind->here().ranks()) {
        if (!it.ranks.contains(key))
            gone.push_back(key);
    }
    for (const rank_key &key : gone)
        it.mind->on_rank_gone(key);
    job_id last = 0;
    for (const rank_key &key : it.ranks) {
        job &j = jobs_[key.job];
        if (key.job != last) {
            last = key.job;
            j.iterations += to_seconds(now_ - j.counted) / (kIteration * true_pace(j));
            j.counted = now_;
            job_view view;
            view.job = key.job;
            view.epoch = j.epoch;
            view.busy = j.busy;
            for (std::uint32_t where : j.where) {
                bool known = where == n || it.mind->network().alive(id_of(where));
                view.placement.push_back(known ? id_of(where) : kNobody);
                view.hosts.insert(host_of(where));
            }
            view.gateway = view.placement[0];
            view.gateway_host = host_of(j.where[0]);
            it.mind->on_job(view);
        }
        rank_profile p;
        p.key = key;
        p.epoch = j.epoch;
        p.image_bytes = j.image;
        p.iterations = static_cast<std::uint64_t>(j.iterations);
        p.total_iterations = j.total;
        p.iterations_per_s = 1 / (kIteration * true_pace(j));
        p.elapsed_s = 1000 + to_seconds(now_); /* long runs: what pays, pays from the beginning */
        std::vector<zcp_event_t> events = traffic(j, p, n);
        it.mind->on_rank(at, p);
        it.mind->on_traffic(key.job, events);
    }
    std::vector<job_id> ended;
    for (const auto &[id, view] : it.mind->here().jobs()) {
        auto first = it.ranks.lower_bound({id, 0});
        if (first == it.ranks.end() || first->job != id)
            ended.push_back(id);
    }
    /* The agent that reaches a move under way keeps the job in view until it has ended. */
    for (job_id id : ended) {
        if (it.mind->moves().busy_with().empty())
            it.mind->on_job_gone(id);
    }
    apply(n, it.mind->on_load(at, load));
}

bool simulation::dies(std::uint32_t n, bool protocol_step)
{
    if (!protocol_step || calm() || o_.crash == 0 || !random_.chance(o_.crash))
        return false;
    crash(n);
    return true;
}

void simulation::apply(std::uint32_t n, effects &&out)
{
    node &it = nodes_[n];
    /* A crash may come before or after the state is written, and between any two messages. */
    auto steps = [](const message_body &b) {
        return !std::holds_alternative<msg::ping>(b) && !std::holds_alternative<msg::ack>(b) &&
               !std::holds_alternative<msg::probe>(b) && !std::holds_alternative<msg::probe_ack>(b);
    };
    if (out.save) {
        if (dies(n, true))
            return;
        it.disk = it.mind->state_text();
    }
    for (outbound &o : out.send) {
        if (dies(n, steps(o.body)))
            return;
        transmit(n, std::move(o));
    }
    for (const msg::ask &a : out.ask) {
        if (dies(n, true))
            return;
        ask(n, a);
    }
    for (const msg::query &q : out.query) {
        if (dies(n, true))
            return;
        query(n, q);
    }
    if (it.up)
        schedule(n);
}

nanos simulation::delay(std::uint32_t a, std::uint32_t b, std::size_t bytes)
{
    bool near = nodes_[a].rack == nodes_[b].rack;
    double us =
        (near ? 50 : 250) + 50 * random_.unit() + static_cast<double>(bytes) / (near ? 1000 : 100);
    if (o_.late > 0 && !calm() && random_.chance(o_.late))
        us += 40e6 * random_.unit();
    return static_cast<nanos>(us * 1000);
}

void simulation::transmit(std::uint32_t from, outbound &&o)
{
    std::uint32_t to = o_.nodes;
    if (o.to != kNobody)
        to = index_of(o.to);
    else if (o.address.starts_with("sim:"))
        to = static_cast<std::uint32_t>(std::strtoul(o.address.c_str() + 4, nullptr, 10));
    if (to >= o_.nodes || to == from)
        return;
    node &it = nodes_[from];
    message m;
    m.sender = id_of(from);
    m.incarnation = it.mind->incarnation();
    m.sequence = ++it.sequence;
    m.body = std::move(o.body);
    result_.messages++;
    result_.by_type[std::string(message_name(m.body))]++;
    if (std::holds_alternative<msg::steal>(m.body) &&
        now_ > from_seconds(o_.seconds * (1 - o_.calm / 4)))
        result_.steals_in_calm++;
    std::size_t weight = 0;
    if (auto *probe = std::get_if<msg::probe>(&m.body)) {
        weight = probe->padding; /* takes its time; no need to carry the zeros */
        probe->padding = 0;
    }
    std::string bytes = encode(m);
    result_.message_bytes += bytes.size() + weight;
    bool lost =
        (cut_ && it.side != nodes_[to].side) || (!calm() && o_.loss > 0 && random_.chance(o_.loss));
    if (lost) {
        result_.lost++;
        return;
    }
    push(now_ + delay(from, to, bytes.size() + weight), kind::deliver, to, 0, std::move(bytes));
}

/* ---- the jobs ------------------------------------------------------------- */

void simulation::answer(std::uint32_t n, const msg::outcome &o)
{
    if (nodes_[n].up)
        apply(n, nodes_[n].mind->on_outcome(local(n, now_), o));
}

/** Here the invariant is checked: this is where somebody asks for ranks to move. */
void simulation::ask(std::uint32_t n, const msg::ask &a)
{
    result_.asks++;
    auto at = jobs_.find(a.job);
    msg::outcome o{a.txn, a.job, msg::verdict::refused, 0, 0, {}, ""};
    if (at == jobs_.end() || at->second.where[0] != n) {
        result_.refused_asks++;
        o.reason = "no such job here";
        return answer(n, o);
    }
    job &j = at->second;
    std::uint32_t decider = index_of(a.txn.decider);
    if (j.busy) {
        for (rank_id rank : a.ranks) {
            if (std::find(j.current.ranks.begin(), j.current.ranks.end(), rank) !=
                    j.current.ranks.end() &&
                j.current.txn.decider != a.txn.decider)
                violated(fmt::format("rank {} of job {} asked to move by node {} while node {} "
                                     "moves it",
                                     rank, a.job, a.txn.decider, j.current.txn.decider));
        }
    }
    if (j.busy || a.epoch != j.epoch) {
        result_.refused_asks++;
        o.reason = j.busy ? "a move is under way" : "the job has been reconfigured since";
        return answer(n, o);
    }
    for (rank_id rank : a.ranks) {
        std::uint32_t host = rank < j.where.size() ? j.where[rank] : o_.nodes;
        if (host == decider)
            continue;
        bool lent = false;
        if (host < o_.nodes && nodes_[host].up) {
            lent = nodes_[host].mind->moves().lent_to({a.job, rank}, a.txn);
        } else if (host < o_.nodes) {
            auto saved = from_text(nodes_[host].disk);
            saved_state::lease wanted{a.txn, {a.job, rank}};
            /* Without its state file it decides nothing until leases have ended. */
            lent = !saved || std::find(saved->leases.begin(), saved->leases.end(), wanted) !=
                                 saved->leases.end();
        }
        if (!lent && host < o_.nodes && nodes_[host].disk.empty())
            lent = true;
        auto &local = nodes_[host < o_.nodes ? host : 0];
        if (!lent && local.up) {
            auto known = local.mind->here().ranks().find({a.job, rank});
            lent = known != local.mind->here().ranks().end() &&
                   global(host, known->second.not_before) > now_;
        }
        if (!lent)
            violated(fmt::format("rank {} of job {} asked to move by node {}, which neither hosts "
                                 "nor has borrowed it",
                                 rank, a.job, a.txn.decider));
    }
    j.busy = true;
    j.begun = now_;
    j.current = a;
    j.reached_by = n;
    j.its_life = nodes_[n].lives;
    std::uint32_t target = index_of(a.target);
    double slow = nodes_[j.where[a.ranks[0]]].rack == nodes_[target].rack ? 1e9 : 1e8;
    j.seconds = 0.1 + random_.unit() + 1.0 + static_cast<double>(a.ranks.size() * j.image) / slow;
    j.end = msg::verdict::moved;
    if (!calm() && random_.chance(o_.stuck)) {
        j.end = msg::verdict::timed_out;
        j.seconds = 20;
    } else if (!calm() && random_.chance(o_.fail)) {
        j.end = msg::verdict::failed;
    }
    push(now_ + from_seconds(j.seconds), kind::job_done, 0, a.job);
    o.what = msg::verdict::running;
    nodes_[n].past[a.txn] = o;
    answer(n, o);
}

/**
 * Its true gain differs from the one demanded by less than the noise of the samples, which then
 * decides when it is made: at some time, perhaps late. It is a gain, so there are only so many.
 */
bool simulation::is_marginal(const job &j, const msg::ask &a) const
{
    auto threads = [](const node &it) { return it.others + static_cast<double>(it.ranks.size()); };
    auto pace_with = [&](const node &it, double more) {
        return pace(threads(it) + more, it.cpus, it.speed);
    };
    std::uint32_t decider = index_of(a.txn.decider);
    const node &from = nodes_[decider];
    const node &to = nodes_[index_of(a.target)];
    auto going = static_cast<double>(std::count_if(
        a.ranks.begin(), a.ranks.end(), [&](rank_id rank) { return j.where[rank] == decider; }));
    double before = std::max(pace_with(from, 0), to.ranks.empty() ? 0 : pace_with(to, 0));
    double left = static_cast<double>(from.ranks.size()) > going ? pace_with(from, -going) : 0;
    double after = std::max(left, pace_with(to, static_cast<double>(a.ranks.size())));
    return std::abs(after / before - (1 - o_.agents.hysteresis)) <= kNoise / threads(from);
}

void simulation::job_done(job_id id)
{
    job &j = jobs_[id];
    const msg::ask a = j.current;
    msg::outcome o{a.txn, id, j.end, 0, j.image * a.ranks.size(), {}, ""};
    o.phase_ms[2] = 1000;
    o.phase_ms[3] = static_cast<float>((j.seconds - 1) * 1000);
    j.busy = false;
    if (j.end == msg::verdict::moved) {
        if (o_.phase_a > 0 && !j.at_the_end)
            j.at_the_end = in_phase_a(j.begun, kAtTheEnd);
        result_.moves++;
        result_.ranks_moved += a.ranks.size();
        if (calm() && is_marginal(j, a))
            result_.marginal_moves++;
        else
            result_.last_move_ms = static_cast<std::uint64_t>(now_ / kMillisecond);
        std::uint32_t target = index_of(a.target);
        for (rank_id rank : a.ranks) {
            std::uint32_t from = j.where[rank];
            nodes_[from].ranks.erase({id, rank});
            j.where[rank] = target;
            nodes_[target].ranks.insert({id, rank});
            if (!calm())
                continue;
            auto &left = j.left_in_calm[rank];
            left.insert(from);
            if (left.contains(target))
                violated(fmt::format("oscillation: rank {} of job {} came back to node {} under "
                                     "constant load",
                                     rank, id, id_of(target)));
            if (left.size() > kMovesInCalm)
                violated(fmt::format("oscillation: rank {} of job {} moved {} times under "
                                     "constant load",
                                     rank, id, left.size()));
        }
        j.epoch++;
    } else {
        result_.failed++;
    }
    o.epoch = j.epoch;
    /* Whoever asked waits for the answer, and has closed the connection if it was started anew. */
    node &asker = nodes_[j.reached_by];
    if (asker.up && asker.lives == j.its_life) {
        asker.past[a.txn] = o;
        answer(j.reached_by, o);
    }
}

void simulation::query(std::uint32_t n, const msg::query &q)
{
    msg::outcome o{q.txn, q.job, msg::verdict::unknown, 0, 0, {}, ""};
    if (auto past = nodes_[n].past.find(q.txn); past != nodes_[n].past.end())
        o = past->second;
    answer(n, o);
}

} // namespace zc::agent::sim
