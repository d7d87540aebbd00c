/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulation.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace zc::agent::sim {
namespace {

constexpr std::uint32_t kRack = 16;
constexpr std::size_t kGroupingBytes =
    96 << 10; /* its jobs are small; 10,000 agents have many of them */
constexpr std::uint32_t kPhaseRanks = 4;
constexpr double kAtTheEnd = 2; /* seconds: a move takes about as long */

std::string host_of(std::uint32_t n)
{
    return fmt::format("h{}", n);
}

std::string address_of(std::uint32_t n)
{
    return fmt::format("sim:{}", n);
}

} // namespace

simulation::simulation(options o)
    : o_(std::move(o)), world_(o_), invariants_(world_), random_(o_.seed)
{
    build();
}

simulation::~simulation() = default;

void simulation::push(nanos at, kind what, std::uint32_t n, std::uint64_t extra, std::string bytes)
{
    queue_.push_back({at, ++order_, what, n, extra, std::move(bytes)});
    std::push_heap(queue_.begin(), queue_.end());
}

/** A third of the nodes idle, a third as it should be, a third with too much. */
void simulation::build()
{
    for (std::uint32_t n = 0; n < o_.nodes; n++) {
        node &it = world_.nodes[n];
        it.rack = n / kRack;
        it.disk = to_text(saved_state{}); /* no node has lost its memory yet */
        it.drift = o_.skew * (2 * random_.unit() - 1);
        it.offset = o_.skew > 0 ? static_cast<nanos>(random_.below(1'000'000)) * kSecond : 0;
        if (o_.speeds > 1) {
            it.speed = 1 + (o_.speeds - 1) * random_.unit();
            const double seen = it.speed * (0.95 + 0.1 * random_.unit());
            it.seen_speed = o_.measures ? seen : 1;
        }
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
            job &j = world_.jobs[next];
            j.image = (1 + random_.below(64)) << 20;
            j.total = random_.chance(0.5) ? 20'000 + random_.below(20'000) : 0;
            for (std::uint32_t k = 0; k < stretch * per_node; k++) {
                j.where.push_back(n + k / per_node);
                world_.nodes[n + k / per_node].ranks.insert({next, k});
            }
            next++;
        }
        for (std::uint32_t k = 0; k < stretch && !o_.balanced; k++) {
            if (random_.chance(0.2) && fate > 0)
                world_.nodes[n + k].others = static_cast<double>(1 + random_.below(4));
        }
        n += stretch;
    }
    auto sometime = [&](double from, double to) {
        return static_cast<nanos>((from + (to - from) * random_.unit()) *
                                  static_cast<double>(world_.calm_from));
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
        job &j = world_.jobs[id];
        j.image = std::uint64_t{8} << 20;
        for (rank_id k = 0; k < kPhaseRanks; k++) {
            j.where.push_back(n);
            world_.nodes[n].ranks.insert({id, k});
            j.seat.push_back(k);
        }
        for (rank_id k = kPhaseRanks - 1; k > 0; k--)
            std::swap(j.seat[k], j.seat[random_.below(k + 1)]);
        world_.nodes[n + 1].cpus = 2;
        auto cycles =
            static_cast<std::uint64_t>(std::max(1.0, o_.seconds * (1 - o_.calm) / cycle / 2));
        double when =
            (static_cast<double>(cycles + random_.below(cycles)) + random_.unit()) * cycle;
        push(from_seconds(when), kind::others_come, n);
    }
}

result simulation::run()
{
    result_.before = world_.measure();
    while (!queue_.empty() && queue_.front().at <= world_.end) {
        std::pop_heap(queue_.begin(), queue_.end());
        event e = std::move(queue_.back());
        queue_.pop_back();
        world_.now = e.at;
        result_.events++;
        handle(e);
    }
    result_.after = world_.measure();
    for (const node &each : world_.nodes) {
        if (!each.up)
            continue;
        const agent::handed_over &of = each.mind->traffic_of_movers();
        result_.handed_over.told += of.told;
        result_.handed_over.learned += of.learned;
        result_.handed_over.refused += of.refused;
        const collector::counts &all = each.mind->traffic_of_jobs();
        result_.collected += all.learned;
        result_.collected_in_vain += all.refused + all.late + all.no_room;
    }
    for (const auto &[id, j] : world_.jobs) {
        if (!j.at_the_end)
            continue;
        traffic_after &sum = *j.at_the_end ? result_.at_the_end : result_.otherwise;
        sum.jobs++;
        sum.bytes += j.after.bytes;
        sum.across += j.after.across;
    }
    invariants_.at_the_end(result_);
    result_.violations = invariants_.violations();
    return result_;
}

void simulation::handle(event &e)
{
    std::uint32_t n = e.node;
    switch (e.what) {
    case kind::start:
    case kind::restart:
    case kind::come:
        if (!world_.nodes[n].up)
            boot(n);
        break;
    case kind::wake:
        if (!world_.nodes[n].up || world_.nodes[n].wake_at != e.at)
            break;
        world_.nodes[n].wake_at = kNever;
        apply(n, world_.nodes[n].mind->on_time(world_.local(n)));
        break;
    case kind::sample:
        push(world_.now + kSecond, kind::sample, n);
        if (world_.nodes[n].up)
            sample(n);
        break;
    case kind::deliver: {
        if (!world_.nodes[n].up)
            break;
        message m;
        flaw f = world_.nodes[n].door->admit(e.bytes, world_.now, m);
        invariants_.understood(f);
        if (f == flaw::none)
            apply(n, world_.nodes[n].mind->on_message(world_.local(n), m));
        break;
    }
    case kind::job_done:
        job_done(e.extra);
        break;
    case kind::cut:
        cut_ = true;
        for (node &it : world_.nodes)
            it.side = static_cast<int>(random_.below(2));
        push(world_.now + 10 * kSecond, kind::heal, 0);
        break;
    case kind::heal:
        cut_ = false;
        break;
    case kind::go:
        if (world_.nodes[n].up && world_.nodes[n].ranks.empty()) {
            apply(n, world_.nodes[n].mind->leave());
            world_.nodes[n].up = false;
            world_.nodes[n].mind.reset();
            push(world_.now + 5 * kSecond + static_cast<nanos>(random_.below(20 * kSecond)),
                 kind::come, n);
        }
        break;
    case kind::change:
        world_.nodes[n].others = static_cast<double>(random_.below(8));
        break;
    case kind::others_come:
        world_.nodes[n].others = 2;
        break;
    }
}

void simulation::boot(std::uint32_t n)
{
    node &it = world_.nodes[n];
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
    std::uint64_t incarnation = std::max<std::uint64_t>(
        static_cast<std::uint64_t>(world_.now) + it.lives, saved ? saved->incarnation + 1 : 1);
    it.mind = std::make_unique<agent>(s, self, incarnation, random_.next());
    it.door = std::make_unique<admission>(self.id);
    it.sequence = 0;
    it.up = true;
    it.wake_at = kNever;
    apply(n, it.mind->start(world_.local(n), saved));
    if (it.up)
        schedule(n);
}

void simulation::crash(std::uint32_t n)
{
    node &it = world_.nodes[n];
    it.up = false;
    it.past.clear();
    result_.crashes++;
    if (random_.chance(o_.lose_state))
        it.disk.clear();
    push(world_.now + kSecond + static_cast<nanos>(random_.below(20 * kSecond)), kind::restart, n);
}

void simulation::schedule(std::uint32_t n)
{
    node &it = world_.nodes[n];
    nanos at = std::max(world_.now + 1, world_.global(n, it.mind->due()));
    if (at == it.wake_at)
        return;
    it.wake_at = at;
    push(at, kind::wake, n);
}

/** What zcmd reads from the kernel and from the ranks, once a second. */
void simulation::sample(std::uint32_t n)
{
    node &it = world_.nodes[n];
    nanos at = world_.local(n);
    load_sample load;
    load.cpus = it.cpus;
    load.speed = it.seen_speed;
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
    outbox told;
    for (const rank_key &key : it.ranks) {
        job &j = world_.jobs[key.job];
        if (key.job != last) {
            last = key.job;
            j.iterations += to_seconds(world_.now - j.counted) / (kIteration * world_.true_pace(j));
            j.counted = world_.now;
            job_view view;
            view.job = key.job;
            view.epoch = j.epoch;
            view.busy = j.busy;
            for (std::uint32_t where : j.where) {
                bool known = where == n || it.mind->network().alive(id_of(where));
                view.placement.push_back(known ? id_of(where) : kNoNode);
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
        p.iterations_per_s = 1 / (kIteration * world_.true_pace(j));
        /* The runs are long, so that what pays does so from the beginning. */
        p.elapsed_s = 1000 + to_seconds(world_.now);
        std::vector<zcp_event_t> events = world_.traffic(j, p, n);
        for (zcp_event_t &e : events) /* by the node's clock */
            e.time_ns = static_cast<std::uint64_t>(
                std::max<nanos>(static_cast<nanos>(e.time_ns) + at - world_.now, 0));
        it.mind->on_rank(at, p);
        std::ranges::move(it.mind->on_traffic(at, key.job, events).send, std::back_inserter(told));
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
    effects out = it.mind->on_load(at, load);
    std::ranges::move(told, std::back_inserter(out.send));
    apply(n, std::move(out));
}

bool simulation::dies(std::uint32_t n, bool protocol_step)
{
    if (!protocol_step || world_.calm() || o_.crash == 0 || !random_.chance(o_.crash))
        return false;
    crash(n);
    return true;
}

void simulation::apply(std::uint32_t n, effects &&out)
{
    node &it = world_.nodes[n];
    /* A crash may come before or after the state is written, and between any two messages. */
    auto steps = [](const message_body &b) {
        return !std::holds_alternative<msg::ping>(b) && !std::holds_alternative<msg::ack>(b) &&
               !std::holds_alternative<msg::probe>(b) &&
               !std::holds_alternative<msg::probe_ack>(b) &&
               !std::holds_alternative<msg::traffic>(b);
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
    bool near = world_.nodes[a].rack == world_.nodes[b].rack;
    double us =
        (near ? 50 : 250) + 50 * random_.unit() + static_cast<double>(bytes) / (near ? 1000 : 100);
    if (o_.late > 0 && !world_.calm() && random_.chance(o_.late))
        us += 40e6 * random_.unit();
    return static_cast<nanos>(us * 1000);
}

void simulation::transmit(std::uint32_t from, outbound &&o)
{
    std::uint32_t to = o_.nodes;
    if (o.to != kNoNode)
        to = index_of(o.to);
    else if (o.address.starts_with("sim:"))
        to = static_cast<std::uint32_t>(std::strtoul(o.address.c_str() + 4, nullptr, 10));
    if (to >= o_.nodes || to == from)
        return;
    node &it = world_.nodes[from];
    message m;
    m.sender = id_of(from);
    m.incarnation = it.mind->incarnation();
    m.sequence = ++it.sequence;
    m.body = std::move(o.body);
    result_.messages++;
    result_.by_type[std::string(message_name(m.body))]++;
    if (std::holds_alternative<msg::steal>(m.body) &&
        world_.now > from_seconds(o_.seconds * (1 - o_.calm / 4)))
        result_.steals_in_calm++;
    std::size_t weight = 0;
    if (auto *probe = std::get_if<msg::probe>(&m.body)) {
        weight = probe->padding; /* takes its time; no need to carry the zeros */
        probe->padding = 0;
    }
    std::string bytes = encode(m);
    result_.message_bytes += bytes.size() + weight;
    bool lost = (cut_ && it.side != world_.nodes[to].side) ||
                (!world_.calm() && o_.loss > 0 && random_.chance(o_.loss));
    if (lost) {
        result_.lost++;
        return;
    }
    /* Not among the arguments: which of them is made first is not said, and one takes the bytes. */
    nanos at = world_.now + delay(from, to, bytes.size() + weight);
    push(at, kind::deliver, to, 0, std::move(bytes));
}

/* ---- the jobs ------------------------------------------------------------- */

void simulation::answer(std::uint32_t n, const msg::outcome &o)
{
    if (world_.nodes[n].up)
        apply(n, world_.nodes[n].mind->on_outcome(world_.local(n), o));
}

void simulation::ask(std::uint32_t n, const msg::ask &a)
{
    result_.asks++;
    auto at = world_.jobs.find(a.job);
    msg::outcome o{a.txn, a.job, msg::verdict::refused, 0, 0, {}, ""};
    if (at == world_.jobs.end() || at->second.where[0] != n) {
        result_.refused_asks++;
        o.reason = "no such job here";
        return answer(n, o);
    }
    job &j = at->second;
    invariants_.one_decider(j, a);
    if (j.busy || a.epoch != j.epoch) {
        result_.refused_asks++;
        o.reason = j.busy ? "a move is under way" : "the job has been reconfigured since";
        return answer(n, o);
    }
    invariants_.hosts_or_borrowed(j, a);
    begin_move(n, j, a);
    o.what = msg::verdict::running;
    world_.nodes[n].past[a.txn] = o;
    answer(n, o);
}

void simulation::begin_move(std::uint32_t n, job &j, const msg::ask &a)
{
    j.busy = true;
    j.begun = world_.now;
    j.current = a;
    j.reached_by = n;
    j.its_life = world_.nodes[n].lives;
    std::uint32_t target = index_of(a.target);
    double slow = world_.nodes[j.where[a.ranks[0]]].rack == world_.nodes[target].rack ? 1e9 : 1e8;
    j.seconds = 0.1 + random_.unit() + 1.0 + static_cast<double>(a.ranks.size() * j.image) / slow;
    j.end = msg::verdict::moved;
    if (!world_.calm() && random_.chance(o_.stuck)) {
        j.end = msg::verdict::timed_out;
        j.seconds = 20;
    } else if (!world_.calm() && random_.chance(o_.fail)) {
        j.end = msg::verdict::failed;
    }
    push(world_.now + from_seconds(j.seconds), kind::job_done, 0, a.job);
}

void simulation::job_done(job_id id)
{
    job &j = world_.jobs[id];
    const msg::ask a = j.current;
    msg::outcome o{a.txn, id, j.end, 0, j.image * a.ranks.size(), {}, ""};
    o.phase_ms[2] = 1000;
    o.phase_ms[3] = static_cast<float>((j.seconds - 1) * 1000);
    j.busy = false;
    if (j.end == msg::verdict::moved)
        move_ranks(id, j);
    else
        result_.failed++;
    o.epoch = j.epoch;
    /* The agent that asked waits for the answer, and has closed the connection if it was restarted.
     */
    node &asker = world_.nodes[j.reached_by];
    if (asker.up && asker.lives == j.its_life) {
        asker.past[a.txn] = o;
        answer(j.reached_by, o);
    }
}

void simulation::move_ranks(job_id id, job &j)
{
    const msg::ask &a = j.current;
    if (o_.phase_a > 0 && !j.at_the_end)
        j.at_the_end = world_.in_phase_a(j.begun, kAtTheEnd);
    result_.moves++;
    result_.ranks_moved += a.ranks.size();
    if (world_.calm() && invariants_.is_marginal(j, a))
        result_.marginal_moves++;
    else
        result_.last_move_ms = static_cast<std::uint64_t>(world_.now / kMillisecond);
    std::uint32_t target = index_of(a.target);
    for (rank_id rank : a.ranks) {
        std::uint32_t from = j.where[rank];
        world_.nodes[from].ranks.erase({id, rank});
        j.where[rank] = target;
        world_.nodes[target].ranks.insert({id, rank});
        invariants_.no_oscillation({id, rank}, from, target);
    }
    j.epoch++;
}

void simulation::query(std::uint32_t n, const msg::query &q)
{
    msg::outcome o{q.txn, q.job, msg::verdict::unknown, 0, 0, {}, ""};
    if (auto past = world_.nodes[n].past.find(q.txn); past != world_.nodes[n].past.end())
        o = past->second;
    answer(n, o);
}

} // namespace zc::agent::sim
