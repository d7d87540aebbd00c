/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <unordered_map>

#include "links.h"
#include "meeting.h"

namespace zc::forecast {

namespace {

/** When things happened to a message: as recorded, or in a replay. */
struct moments {
    double sent = kUnknown;
    double posted = kUnknown;
    double sender_in = kUnknown;   /* its first call that waits, after it was sent */
    double receiver_in = kUnknown; /* likewise, after the receive was posted */
    /* zc: */
    double there = kUnknown; /* with its receiver, if it did not wait for both to be in MPI */
    bool landed = false;     /* there in landing memory: no receive was posted */
};

/** How long its transfer took, as each side saw it. */
struct transfer {
    double send_ns = 0;
    double receive_ns = 0;
};

enum class needs { nothing, all, root, all_at_root, those_before };

needs needs_of(zct_kind kind)
{
    switch (kind) {
    case ZCT_BCAST:
    case ZCT_SCATTER:
    case ZCT_SCATTERV:
        return needs::root;
    case ZCT_REDUCE:
    case ZCT_GATHER:
    case ZCT_GATHERV:
        return needs::all_at_root;
    case ZCT_SCAN:
    case ZCT_EXSCAN:
        return needs::those_before;
    case ZCT_NEIGHBOR_ALLGATHER:
    case ZCT_NEIGHBOR_ALLGATHERV:
    case ZCT_NEIGHBOR_ALLTOALL:
    case ZCT_NEIGHBOR_ALLTOALLV:
    case ZCT_NEIGHBOR_ALLTOALLW:
    case ZCT_P2P:
        return needs::nothing;
    default:
        return needs::all;
    }
}

/** The members of a communicator that were recorded. */
struct group {
    std::vector<std::size_t> ranks;                       /* by place: index into zct::run::ranks */
    std::unordered_map<std::int32_t, std::size_t> places; /* of their world ranks */

    std::optional<std::size_t> place_of(std::int32_t world_rank) const
    {
        const auto found = places.find(world_rank);
        return found == places.end() ? std::nullopt : std::optional(found->second);
    }
};

} // namespace

/** One pass over all ranks; with no model, over the recorded times. @only: see replay::with(). */
class replay_pass {
  public:
    replay_pass(const replay &r, const zc_model *model, const std::vector<bool> *only = nullptr)
        : r_(r), model_(model), only_(only)
    {
        moments_.resize(r.messages_.size());
        for (std::size_t i = 0; i < r.run_.ranks.size(); i++)
            places_[r.run_.ranks[i].rank] = i;
        find_meetings();
        record();
    }

    /** Plays; nothing if some ranks wait for each other for ever. */
    std::optional<std::vector<std::int64_t>> play()
    {
        moments_.assign(moments_.size(), {});
        for (std::vector<meeting> &on_it : meetings_)
            for (meeting &m : on_it)
                m.clear();
        links_ = {};
        ranks_.assign(ranks(), {});
        landing_.assign(ranks(), 0);
        for (std::size_t i = 0; i < ranks(); i++) {
            if (steps(i).empty())
                continue;
            ranks_[i].clock = ranks_[i].recorded = static_cast<double>(steps(i).front().begin_ns);
            approach(i);
        }
        if (!play_all())
            return {};
        std::vector<std::int64_t> ends;
        for (const state &s : ranks_)
            ends.push_back(std::llround(s.clock));
        return ends;
    }

  private:
    struct state {
        std::size_t at = 0;
        double clock = 0;     /* the step at `at` begins; at the end, the last one's end */
        double recorded = 0;  /* end of the step before */
        bool entered = false; /* the step at `at` was begun */
        bool waits = false;   /* for what another rank has not done yet */
        std::size_t nr_calls = 0;
        std::size_t nr_known = 0; /* of what the step at `at` waits for: the first so many */
        std::vector<std::size_t> new_sends; /* posted since the last call that waited */
        std::vector<std::size_t> new_receives;
    };
    using turn = std::pair<double, std::size_t>; /* when a rank makes its next step */

    /** In the order of time: the links are given to messages in that order. */
    bool play_all()
    {
        while (!turns_.empty()) {
            const std::size_t rank = turns_.top().second;
            turns_.pop();
            take_step(rank);
        }
        for (std::size_t i = 0; i < ranks(); i++)
            if (ranks_[i].at < steps(i).size())
                return false;
        return true;
    }

    const std::vector<step> &steps(std::size_t rank) const { return r_.timeline_.ranks[rank]; }

    /** The collectives of the run, and the groups of their communicators. */
    void find_meetings()
    {
        groups_.resize(r_.run_.communicators.size());
        meetings_.resize(r_.run_.communicators.size());
        for (const zct::rank_trace &rank : r_.run_.ranks) {
            for (const zct::collective_call &c : rank.collectives) {
                std::vector<meeting> &on_it = meetings_[c.comm];
                if (on_it.empty())
                    groups_[c.comm] = group_of(r_.run_.communicators[c.comm]);
                if (on_it.size() <= c.nth)
                    on_it.resize(c.nth + 1, meeting(groups_[c.comm].ranks.size()));
                const auto root = groups_[c.comm].place_of(c.root);
                if (root && needs_of(c.kind) == needs::root)
                    on_it[c.nth].name_root(*root);
            }
        }
    }

    group group_of(const zct::communicator &comm) const
    {
        group g;
        for (const std::int32_t member : comm.members) {
            const auto found = places_.find(member);
            if (found != places_.end() && g.places.emplace(member, g.ranks.size()).second)
                g.ranks.push_back(found->second);
        }
        return g;
    }

    /** The recorded moments, and what each transfer and call took beyond them. */
    void record()
    {
        transfers_.resize(moments_.size());
        overhead_.resize(ranks());
        for (std::size_t i = 0; i < ranks(); i++) {
            std::vector<std::size_t> sends;
            std::vector<std::size_t> receives;
            for (const step &s : steps(i)) {
                note(i, s, static_cast<double>(s.begin_ns), sends, receives);
                if (s.what != step::kind::call)
                    continue;
                sends.clear();
                receives.clear();
            }
        }
        for (std::size_t m = 0; m < moments_.size(); m++)
            transfers_[m] = recorded_transfer(r_.messages_[m], moments_[m]);
        const zc_model *const model = model_;
        model_ = nullptr;
        for (std::size_t i = 0; i < ranks(); i++) {
            for (const step &s : steps(i)) {
                if (s.what != step::kind::call)
                    continue;
                const double ready = ready_at(i, s);
                overhead_[i].push_back(static_cast<double>(s.end_ns) -
                                       std::max(static_cast<double>(s.begin_ns), ready));
            }
        }
        model_ = model;
    }

    std::size_t ranks() const { return r_.timeline_.ranks.size(); }

    /** A step begins at @now. */
    void note(std::size_t rank, const step &s, double now, std::vector<std::size_t> &sends,
              std::vector<std::size_t> &receives)
    {
        switch (s.what) {
        case step::kind::send:
            moments_[s.idx].sent = now;
            sends.push_back(s.idx);
            break;
        case step::kind::receive:
            moments_[s.idx].posted = now;
            receives.push_back(s.idx);
            break;
        case step::kind::collective:
            collective_begins(rank, r_.run_.ranks[rank].collectives[s.idx], now);
            break;
        case step::kind::call:
            for (const std::size_t m : sends)
                moments_[m].sender_in = now;
            for (const std::size_t m : receives)
                moments_[m].receiver_in = now;
        }
    }

    void collective_begins(std::size_t rank, const zct::collective_call &c, double now)
    {
        if (const auto place = groups_[c.comm].place_of(r_.run_.ranks[rank].rank))
            meetings_[c.comm][c.nth].begin(*place, now);
    }

    /** Recorded: from when it could begin to when each side saw its end; less if that side came
     * to look after the end. */
    transfer recorded_transfer(const message &m, const moments &t) const
    {
        const zc_model usual;
        const double expected = usual.transfer_ns(m, r_.network_);
        const double begin = r_.holds(m) ? std::max(t.sender_in, t.receiver_in) : t.sent;
        const auto taken = [&](const message_end &end) {
            const double whole = static_cast<double>(end.done_ns) - begin;
            const bool waited = static_cast<double>(end.waiting_ns) <= begin;
            return waited ? whole : std::min(whole, expected);
        };
        return {taken(m.send), taken(m.receive)};
    }

    /** The rank works as long as it did, up to its next step. */
    void approach(std::size_t rank)
    {
        state &now = ranks_[rank];
        if (now.at == steps(rank).size())
            return;
        const auto begin = static_cast<double>(steps(rank)[now.at].begin_ns);
        now.clock += std::max(0.0, begin - now.recorded);
        now.recorded = begin;
        turns_.emplace(now.clock, rank);
    }

    /** Makes the next step of a rank, or has it wait until it is woken. */
    void take_step(std::size_t rank)
    {
        state &now = ranks_[rank];
        const step &s = steps(rank)[now.at];
        if (!now.entered) {
            enter(rank, s);
            now.entered = true;
        }
        if (s.what == step::kind::call) {
            const double ready = all_known(rank, s) ? ready_at(rank, s) : kUnknown;
            now.waits = std::isnan(ready);
            if (now.waits)
                return;
            now.clock =
                std::max(now.clock, std::max(now.clock, ready) + overhead_[rank][now.nr_calls++]);
            now.recorded = static_cast<double>(s.end_ns);
        }
        now.entered = false;
        now.nr_known = 0;
        now.at++;
        approach(rank);
    }

    void enter(std::size_t rank, const step &s)
    {
        state &now = ranks_[rank];
        note(rank, s, now.clock, now.new_sends, now.new_receives);
        switch (s.what) {
        case step::kind::send:
            send_begins(s.idx);
            wake(r_.messages_[s.idx].receive.rank);
            break;
        case step::kind::receive:
            receive_begins(s.idx);
            wake(r_.messages_[s.idx].send.rank);
            break;
        case step::kind::collective:
            wake_members(rank, r_.run_.ranks[rank].collectives[s.idx]);
            break;
        case step::kind::call:
            for (const std::size_t m : now.new_sends)
                wake(r_.messages_[m].receive.rank);
            for (const std::size_t m : now.new_receives)
                wake(r_.messages_[m].send.rank);
            now.new_sends.clear();
            now.new_receives.clear();
        }
    }

    /** It looks again whether what it waits for is known. */
    void wake(std::size_t rank)
    {
        if (!ranks_[rank].waits)
            return;
        ranks_[rank].waits = false;
        turns_.emplace(ranks_[rank].clock, rank);
    }

    /** Those for whom it may have been the last: all, if it was that of all or is a root; else
     * those who waited for the first members up to it. */
    void wake_members(std::size_t rank, const zct::collective_call &c)
    {
        const group &members = groups_[c.comm];
        const meeting &its = meetings_[c.comm][c.nth];
        const auto place = members.place_of(r_.run_.ranks[rank].rank);
        if (!place)
            return;
        const bool all = its.complete() || its.is_root(*place);
        const std::size_t end = all ? members.ranks.size() : its.nr_first() + 1;
        for (std::size_t i = all ? 0 : *place + 1; i < std::min(end, members.ranks.size()); i++)
            wake(members.ranks[i]);
    }

    /** zc: is it another matter than with the recorded library? */
    bool changes(std::size_t m) const
    {
        return model_ && r_.holds(r_.messages_[m]) && (!only_ || (*only_)[m]);
    }

    /** zc: it travels at once to a receive that is posted, or into landing memory. */
    void send_begins(std::size_t m)
    {
        const message &message = r_.messages_[m];
        moments &t = moments_[m];
        if (!changes(m))
            return;
        const bool announced = message.bytes >= model_->announced_from(message);
        if (std::isnan(t.posted)) {
            std::uint64_t &used = landing_[message.receive.rank];
            if (announced && used + message.bytes > model_->landing_budget)
                return;
            t.landed = true;
            used += announced ? message.bytes : 0;
        } else if (announced && message.bytes < model_->overlap_bytes) {
            return;
        }
        t.there = links_.carry(message, t.sent, link_ns(m));
    }

    /** zc: if it has stayed with its sender, it travels now; if not, its landing memory is free. */
    void receive_begins(std::size_t m)
    {
        const message &message = r_.messages_[m];
        moments &t = moments_[m];
        if (!changes(m) || std::isnan(t.sent))
            return;
        if (t.landed) {
            if (message.bytes >= model_->announced_from(message))
                landing_[message.receive.rank] -= message.bytes;
        } else if (message.bytes >= model_->overlap_bytes) {
            t.there = links_.carry(message, t.posted, link_ns(m));
        }
    }

    /** How long its links are busy with it: as they were, but the cautious and hopeful models
     * have bounds of their own. */
    double link_ns(std::size_t m) const
    {
        const message &message = r_.messages_[m];
        const double rate = r_.network_.rates[m];
        const double modelled = model_->transfer_ns(message, r_.network_);
        const double own = rate > 0 ? static_cast<double>(message.bytes) / rate : modelled;
        if (model_->rate == &network::path::slow)
            return std::max(own, modelled);
        return model_->rate == &network::path::fast ? std::min(own, modelled) : own;
    }

    /** zc: it travels, or has travelled, before both sides wait for it. If it does not, nothing
     * differs from what was recorded, each side's own delays included; but the hopeful model leaves
     * out what messages of both ways have delayed each other. */
    bool travels_ahead(std::size_t m) const
    {
        const moments &t = moments_[m];
        const bool both_wait = !std::isnan(t.sender_in) && !std::isnan(t.receiver_in);
        const bool apart = model_->apart_both_ways && r_.network_.crossed[m];
        return !std::isnan(t.there) &&
               (t.landed || !both_wait || apart ||
                std::max(t.sender_in, t.receiver_in) > std::max(t.sent, t.posted));
    }

    double stock_ready(std::size_t m, double transfer) const
    {
        const moments &t = moments_[m];
        if (std::isnan(t.sender_in) || std::isnan(t.receiver_in))
            return kUnknown;
        return std::max(t.sender_in, t.receiver_in) + transfer;
    }

    /** With any protocol the receiver says that the receive was posted. With zc that does not have
     * to wait for its next call, nor does a transfer that has gone ahead. */
    double synchronous_ready(std::size_t m) const
    {
        const message &message = r_.messages_[m];
        const moments &t = moments_[m];
        const bool held = r_.holds(message);
        const bool ahead = changes(m) && model_->frees_senders && travels_ahead(m);
        if (held && !ahead)
            return stock_ready(m, transfers_[m].send_ns);
        if (std::isnan(t.posted))
            return kUnknown;
        const double said = std::max(t.sent, t.posted) + r_.network_.of(message).latency_ns;
        return held ? std::max(t.there, said) : said;
    }

    double send_ready(std::size_t m) const
    {
        const message &message = r_.messages_[m];
        if (message.synchronous)
            return synchronous_ready(m);
        if (!r_.holds(message))
            return kAtOnce;
        if (changes(m) && model_->frees_senders) {
            if (message.bytes < model_->announced_from(message))
                return kAtOnce;
            if (travels_ahead(m))
                return moments_[m].there;
        }
        return stock_ready(m, transfers_[m].send_ns);
    }

    double receive_ready(std::size_t m) const
    {
        const message &message = r_.messages_[m];
        const moments &t = moments_[m];
        if (std::isnan(t.sent))
            return kUnknown;
        if (!r_.holds(message))
            return t.sent + transfers_[m].receive_ns;
        if (changes(m) && model_->lands && travels_ahead(m))
            return t.landed ? std::max(t.there, t.posted) + model_->delivery_ns(message) : t.there;
        return stock_ready(m, transfers_[m].receive_ns);
    }

    /** Its envelope has come. */
    double probe_ready(std::size_t m) const
    {
        return moments_[m].sent + r_.network_.of(r_.messages_[m]).latency_ns;
    }

    double collective_ready(std::size_t rank, std::size_t idx) const
    {
        const zct::collective_call &c = r_.run_.ranks[rank].collectives[idx];
        const std::int32_t self = r_.run_.ranks[rank].rank;
        const bool inter = !r_.run_.communicators[c.comm].remote.empty();
        const group &members = groups_[c.comm];
        const meeting &its = meetings_[c.comm][c.nth];
        switch (inter ? needs::nothing : needs_of(c.kind)) {
        case needs::nothing:
            return kAtOnce;
        case needs::root: {
            const auto root = members.place_of(c.root);
            return root ? its.of_one(*root) : kAtOnce;
        }
        case needs::all_at_root:
            return self == c.root ? its.of_all() : kAtOnce;
        case needs::those_before: {
            const auto place = members.place_of(self);
            return place ? its.of_those_before(*place) : its.of_all();
        }
        case needs::all:
            return its.of_all();
        }
        return kUnknown;
    }

    /** When what a call waits for is there; unknown as long as that depends on other ranks. What is
     * known stays known. */
    double need_ready(std::size_t rank, const need &n) const
    {
        switch (n.what) {
        case need::kind::send:
            return send_ready(n.idx);
        case need::kind::receive:
            return receive_ready(n.idx);
        case need::kind::probed:
            return probe_ready(n.idx);
        case need::kind::collective:
            return collective_ready(rank, n.idx);
        }
        return kUnknown;
    }

    /** Is all known that the call at hand waits for? It goes on where it stopped when the rank
     * looked before: a call looks once for each of its messages. */
    bool all_known(std::size_t rank, const step &s)
    {
        std::size_t &nr_known = ranks_[rank].nr_known;
        while (nr_known < s.needs.size() && !std::isnan(need_ready(rank, s.needs[nr_known])))
            nr_known++;
        return nr_known == s.needs.size();
    }

    /** When all that a call waits for is there; unknown as long as that depends on other ranks. */
    double ready_at(std::size_t rank, const step &s) const
    {
        double ready = kAtOnce;
        for (const need &n : s.needs) {
            const double moment = need_ready(rank, n);
            if (std::isnan(moment))
                return kUnknown;
            ready = std::max(ready, moment);
        }
        return ready;
    }

    const replay &r_;
    const zc_model *model_;
    const std::vector<bool> *only_;
    std::map<std::int32_t, std::size_t> places_; /* of world ranks that were recorded */
    std::vector<moments> moments_;
    std::vector<transfer> transfers_;
    std::vector<std::vector<double>> overhead_; /* of each call of a rank */
    links links_;
    std::vector<std::uint64_t> landing_; /* bytes in landing memory of each rank */
    std::vector<state> ranks_;
    std::priority_queue<turn, std::vector<turn>, std::greater<>> turns_;
    std::vector<group> groups_;                  /* by communicator; of those with collectives */
    std::vector<std::vector<meeting>> meetings_; /* by communicator; its nth */
};

namespace {

/** The least size at which senders were held, as the unexpected messages show. */
std::uint64_t least_held(const std::vector<message> &messages, bool one_host)
{
    std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> sizes; /* eager, held */
    std::size_t nr_eager = 0;
    for (const message &m : messages) {
        /* A synchronous one is held whatever its size. */
        if (m.one_host != one_host || !m.unexpected() || m.send.call == kNoCall || m.synchronous)
            continue;
        if (m.surely_eager())
            nr_eager++, sizes[m.bytes].first++;
        else if (m.send.waiting_ns < m.receive.posted_ns)
            sizes[m.bytes].second++;
    }
    if (sizes.empty())
        return 64 << 10;
    /* The border with the fewest on its wrong side. */
    std::size_t wrong = nr_eager;
    std::size_t least = wrong;
    std::uint64_t border = sizes.begin()->first;
    for (const auto &[bytes, counts] : sizes) {
        wrong = wrong - counts.first + counts.second;
        if (wrong < least) {
            least = wrong;
            border = bytes + 1;
        }
    }
    return border;
}

} // namespace

replay::replay(const zct::run &run, const std::vector<message> &messages, const timeline &steps,
               const network &network)
    : run_(run), messages_(messages), timeline_(steps),
      network_(network), held_from_{least_held(messages, false), least_held(messages, true)}
{
}

bool replay::holds(const message &m) const
{
    return !m.surely_eager() && m.bytes >= held_from_[m.one_host];
}

std::optional<std::vector<std::int64_t>> replay::stock() const
{
    return replay_pass(*this, nullptr).play();
}

std::optional<std::vector<std::int64_t>> replay::with(const zc_model &model,
                                                      const std::vector<bool> *only) const
{
    return replay_pass(*this, &model, only).play();
}

} // namespace zc::forecast
