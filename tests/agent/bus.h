/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TESTS_AGENT_BUS_H_INCLUDED
#define ZC_TESTS_AGENT_BUS_H_INCLUDED

#include <map>
#include <memory>
#include <set>
#include <string>

#include "agent.h"

namespace zc::agent::test {

constexpr job_id kJob = 77;

/** A few agents that hear each other at once, and one job that does as the test says. */
class bus {
  public:
    explicit bus(settings s = {}) : settings_(std::move(s)) {}

    /**
     * @saved: what it remembers; std::nullopt: it has lost its memory.
     * @introduced: to the others; false: it hears of them when they ping it.
     */
    agent &add(node_id id, double cpus, double others = 0,
               std::optional<saved_state> saved = saved_state{}, bool introduced = true)
    {
        member self;
        self.id = id;
        self.host = "h" + std::to_string(id);
        self.address = "bus:" + std::to_string(id);
        lives_++;
        agents_[id] = std::make_unique<agent>(settings_, self, lives_, id);
        load_[id] = {cpus, others};
        do_all(id, agents_[id]->start(now_, saved));
        for (auto &[other, a] : agents_) { /* introduced to each other */
            if (other == id || !introduced)
                continue;
            message hello{other, 1, ++sequence_, msg::ping{1, {a->network().self()}}};
            do_all(id, agents_[id]->on_message(now_, hello));
            message back{id, 1, ++sequence_, msg::ping{1, {agents_[id]->network().self()}}};
            do_all(other, a->on_message(now_, back));
        }
        return *agents_[id];
    }
    void kill(node_id id) { agents_.erase(id); }

    /** Lets virtual time pass, with a sample of everything each second. */
    void pass(double seconds)
    {
        nanos end = now_ + from_seconds(seconds);
        while (now_ < end) {
            nanos next = std::min(end, next_sample_);
            for (auto &[id, a] : agents_)
                next = std::min(next, std::max(a->due(), now_ + 1));
            now_ = next;
            if (now_ >= next_sample_) {
                sample();
                next_sample_ = now_ + kSecond;
            }
            for (node_id id : ids()) {
                if (agents_.contains(id) && agents_[id]->due() <= now_)
                    do_all(id, agents_[id]->on_time(now_));
            }
        }
    }
    void sample()
    {
        for (node_id id : ids()) {
            agent &a = *agents_[id];
            std::uint32_t running = 0;
            job_view view;
            view.job = kJob;
            view.epoch = epoch;
            view.busy = busy;
            view.observe = observe;
            view.transparent = transparent;
            for (node_id at : where)
                view.placement.push_back(
                    at == id || (!transparent && a.network().alive(at)) ? at : kNoNode);
            view.gateway = gateway;
            view.gateway_host = gateway_host;
            std::vector<rank_key> gone;
            for (const auto &[key, rank] : a.here().ranks()) {
                if (where[key.rank] != id)
                    gone.push_back(key);
            }
            for (const rank_key &key : gone)
                a.on_rank_gone(key);
            if (!unaware.contains(id))
                a.on_job(view);
            for (rank_id r = 0; r < where.size(); r++) {
                if (where[r] != id)
                    continue;
                running += !idle.contains(r);
                rank_profile p;
                p.key = {kJob, r};
                p.epoch = epoch;
                p.image_bytes = images.contains(r) ? images.at(r) : image;
                p.transparent = transparent;
                p.idle = idle.contains(r);
                p.elapsed_s = elapsed;
                p.movable = !stuck.contains(r);
                p.flows = flows[r];
                a.on_rank(now_, p);
                std::vector<zcp_event_t> events;
                for (const flow &f : p.flows)
                    events.push_back({r, f.peer, static_cast<std::uint64_t>(f.bytes_per_s),
                                      static_cast<std::uint64_t>(now_), 0, 0});
                do_all(id, a.on_traffic(now_, kJob, events));
            }
            load_sample l;
            l.cpus = load_[id].cpus;
            l.demand = load_[id].others + running;
            l.draining = draining.contains(id);
            l.free_bytes = free_bytes;
            do_all(id, a.on_load(now_, l));
        }
    }
    void finish(const msg::ask &a, msg::verdict what, std::string reason = "")
    {
        if (what == msg::verdict::moved) {
            for (rank_id r : a.ranks)
                where[r] = a.target;
            epoch += !transparent;
        }
        msg::outcome o{a.txn, a.job, what, epoch, 1 << 20, {1, 2, 3, 4, 5, 6}, std::move(reason)};
        if (agents_.contains(gateway))
            do_all(gateway, agents_[gateway]->on_outcome(now_, o));
    }
    /** Of ranks below zc-hold: what became of each, in the order of the request. */
    void finish(const msg::ask &a, const std::vector<msg::rank_result> &each)
    {
        msg::outcome o{a.txn, a.job, each.front().what, epoch, 1 << 20, {1, 2, 3, 4, 5, 6},
                       "",    each};
        for (const msg::rank_result &one : each) {
            if (one.what != msg::verdict::moved)
                continue;
            o.what = one.what;
            where[one.rank] = a.target;
        }
        if (agents_.contains(gateway))
            do_all(gateway, agents_[gateway]->on_outcome(now_, o));
    }
    void deliver(node_id from, node_id to, message_body body)
    {
        if (agents_.contains(to))
            do_all(to, agents_[to]->on_message(now_, {from, 1, ++sequence_, std::move(body)}));
    }
    agent &at(node_id id) { return *agents_.at(id); }
    const record *last(node_id id, const std::string &what)
    {
        const record *found = nullptr;
        for (const record &r : agents_.at(id)->decisions().records()) {
            if (r.what == what)
                found = &r;
        }
        return found;
    }
    template <class T>
    std::size_t sent() const
    {
        return counts_.contains(kIndex<T>) ? counts_.at(kIndex<T>) : 0;
    }

    /* the job */
    std::vector<node_id> where;
    std::map<rank_id, std::vector<flow>> flows;
    std::set<rank_id> stuck, idle;
    std::map<rank_id, std::uint64_t> images; /* of ranks that differ */
    std::uint64_t epoch = 1;
    std::uint64_t image = 1 << 20;
    std::uint64_t free_bytes = std::uint64_t{1} << 33;
    double elapsed = 100;
    bool busy = false;
    bool observe = false;     /* by the job's wish */
    bool transparent = false; /* its ranks are below zc-hold */
    std::set<node_id> draining;
    node_id gateway = 1;
    std::string gateway_host;
    std::set<node_id> unaware; /* none of its ranks is there, so they do not know it */

    /* what was seen */
    std::vector<msg::ask> asked;
    std::vector<msg::query> queried;
    std::vector<msg::past> pasts; /* sent to new homes */
    std::map<node_id, std::string> disk;
    std::vector<std::string> order_of_effects;
    std::set<std::size_t> lost; /* message types that do not arrive */

    template <class T>
    static inline const std::size_t kIndex = message_body(T{}).index();

  private:
    struct node_load {
        double cpus;
        double others;
    };
    std::vector<node_id> ids() const
    {
        std::vector<node_id> all;
        for (const auto &[id, a] : agents_)
            all.push_back(id);
        return all;
    }
    void do_all(node_id id, effects &&out)
    {
        if (out.save) {
            disk[id] = agents_[id]->state_text();
            order_of_effects.push_back("save");
        }
        for (outbound &o : out.send) {
            counts_[o.body.index()]++;
            if (const auto *past = std::get_if<msg::past>(&o.body))
                pasts.push_back(*past);
            const bool has_address =
                !o.address.empty() || agents_[id]->network().find(o.to) != nullptr;
            if (has_address && !lost.contains(o.body.index()))
                deliver(id, o.to, std::move(o.body));
        }
        for (msg::ask &a : out.ask) {
            order_of_effects.push_back("ask");
            asked.push_back(std::move(a));
        }
        for (msg::query &q : out.query)
            queried.push_back(q);
    }

    settings settings_;
    std::map<node_id, std::unique_ptr<agent>> agents_;
    std::map<node_id, node_load> load_;
    std::map<std::size_t, std::size_t> counts_;
    std::uint64_t sequence_ = 0;
    std::uint64_t lives_ = 0;
    nanos now_ = 0;
    nanos next_sample_ = 0;
};

} // namespace zc::agent::test

#endif
