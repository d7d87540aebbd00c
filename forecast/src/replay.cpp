/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace zc::forecast {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kAtOnce = -std::numeric_limits<double>::infinity();

/** When things happened to a message: as recorded, or in a replay. */
struct moments {
    double sent = kUnknown;
    double posted = kUnknown;
    double sender_in = kUnknown;   /* its first call that waits, after it was sent */
    double receiver_in = kUnknown; /* likewise, after the receive was posted */
    double landed = kUnknown;      /* zc: transferred, if no receive was there */
};

/** How long its transfer took, as each side saw it. */
struct transfer {
    double send_ns = 0;
    double receive_ns = 0;
};

using call_key = std::pair<std::uint32_t, std::size_t>; /* communicator, nth */

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

} // namespace

/** One pass over all ranks; with no model, over the recorded times. */
class replay_pass {
  public:
    replay_pass(const replay &r, const zc_model *model) : r_(r), model_(model)
    {
        moments_.resize(r.messages_.size());
        link_free_.resize(r.timeline_.ranks.size(), kAtOnce);
        for (const zct::rank_trace &rank : r.run_.ranks)
            present_.insert(rank.rank);
        record();
    }

    /** Plays; with @model NULL the stock protocol. */
    std::optional<std::vector<std::int64_t>> play()
    {
        moments_.assign(moments_.size(), {});
        begun_.clear();
        ranks_.assign(r_.timeline_.ranks.size(), {});
        for (std::size_t i = 0; i < ranks_.size(); i++)
            if (!steps(i).empty())
                ranks_[i].clock = static_cast<double>(steps(i).front().begin_ns);
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
        double clock = 0;
        double recorded = kUnknown; /* end of the call before */
        bool entered = false;       /* the step at `at` was begun */
        std::size_t nr_calls = 0;
        std::vector<std::size_t> new_sends; /* posted since the last call that waited */
        std::vector<std::size_t> new_receives;
    };

    /** False: every rank waits for another. */
    bool play_all()
    {
        std::vector<std::size_t> order(ranks_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        bool forced = false;
        for (;;) {
            bool moved = false;
            bool left = false;
            std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                return ranks_[a].clock < ranks_[b].clock;
            });
            for (const std::size_t i : order) {
                while (ranks_[i].at < steps(i).size() && take_step(i, forced)) {
                    moved = true;
                    forced = false;
                }
                left = left || ranks_[i].at < steps(i).size();
            }
            if (!left)
                return true;
            if (!moved && forced)
                return false;
            forced = !moved;
        }
    }

    const std::vector<step> &steps(std::size_t rank) const { return r_.timeline_.ranks[rank]; }

    /** The recorded moments, and what each transfer and call took beyond them. */
    void record()
    {
        transfers_.resize(moments_.size());
        overhead_.resize(ranks());
        for (std::size_t i = 0; i < ranks(); i++) {
            std::vector<std::size_t> sends;
            std::vector<std::size_t> receives;
            for (const step &s : steps(i)) {
                const auto now = static_cast<double>(s.begin_ns);
                begin(i, s, now, sends, receives);
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
                const double ready = ready_at(i, s, true);
                overhead_[i].push_back(static_cast<double>(s.end_ns) -
                                       std::max(static_cast<double>(s.begin_ns), ready));
            }
        }
        model_ = model;
    }

    std::size_t ranks() const { return r_.timeline_.ranks.size(); }

    /** A step begins at @now. */
    void begin(std::size_t rank, const step &s, double now, std::vector<std::size_t> &sends,
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
        case step::kind::collective: {
            const zct::collective_call &c = r_.run_.ranks[rank].collectives[s.idx];
            begun_[{c.comm, c.nth}][r_.run_.ranks[rank].rank] = now;
            break;
        }
        case step::kind::call:
            for (const std::size_t m : sends)
                moments_[m].sender_in = now;
            for (const std::size_t m : receives)
                moments_[m].receiver_in = now;
            sends.clear();
            receives.clear();
        }
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

    /** Makes the next step of a rank, if it can. */
    bool take_step(std::size_t rank, bool forced)
    {
        state &now = ranks_[rank];
        const step &s = steps(rank)[now.at];
        if (!now.entered) {
            if (!std::isnan(now.recorded))
                now.clock += std::max(0.0, static_cast<double>(s.begin_ns) - now.recorded);
            now.recorded = static_cast<double>(s.begin_ns);
            begin(rank, s, now.clock, now.new_sends, now.new_receives);
            if (model_ && s.what == step::kind::send)
                land(rank, s.idx);
            now.entered = true;
        }
        if (s.what == step::kind::call) {
            const double ready = ready_at(rank, s, forced);
            if (std::isnan(ready))
                return false;
            now.clock =
                std::max(now.clock, std::max(now.clock, ready) + overhead_[rank][now.nr_calls++]);
            now.recorded = static_cast<double>(s.end_ns);
        }
        now.entered = false;
        now.at++;
        return true;
    }

    /** zc: when the message is with its receiver, if no receive is posted. */
    void land(std::size_t rank, std::size_t m)
    {
        moments &t = moments_[m];
        if (!r_.holds(r_.messages_[m]))
            return;
        t.landed = link_free_[rank] = std::max(t.sent, link_free_[rank]) + transfer_ns(m);
    }

    /** zc: as recorded, but the cautious and hopeful models have bounds of their own. */
    double transfer_ns(std::size_t m) const
    {
        const double recorded = std::max(transfers_[m].receive_ns, 0.0);
        const double modelled = model_->transfer_ns(r_.messages_[m], r_.network_);
        if (model_->rate == &network::path::slow)
            return std::max(recorded, modelled);
        return model_->rate == &network::path::fast ? std::min(recorded, modelled) : recorded;
    }

    /** Was it sent before its receive was posted? Unknown as long as that may still come. @forced:
     * nothing else can go on before, so it was. */
    std::optional<bool> sent_early(std::size_t m, bool forced) const
    {
        const moments &t = moments_[m];
        if (!std::isnan(t.posted))
            return t.posted > t.sent;
        if (forced || ranks_[r_.messages_[m].receive.rank].clock > t.sent)
            return true;
        return {};
    }

    double stock_ready(std::size_t m, double transfer) const
    {
        const moments &t = moments_[m];
        if (std::isnan(t.sender_in) || std::isnan(t.receiver_in))
            return kUnknown;
        return std::max(t.sender_in, t.receiver_in) + transfer;
    }

    /** Both have posted it. */
    double overlapped_ready(std::size_t m) const
    {
        return std::max(moments_[m].sent, moments_[m].posted) + transfer_ns(m);
    }

    double send_ready(std::size_t m, bool forced) const
    {
        const message &message = r_.messages_[m];
        if (!r_.holds(message))
            return kAtOnce;
        if (model_ && model_->frees_senders) {
            if (message.bytes < model_->announced_from(message))
                return kAtOnce;
            const std::optional<bool> early = sent_early(m, forced);
            if (!early)
                return kUnknown;
            if (*early)
                return moments_[m].landed;
            if (message.bytes >= model_->overlap_bytes)
                return overlapped_ready(m);
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
        if (model_ && model_->lands) {
            if (t.posted > t.sent)
                return std::max(t.landed, t.posted) + model_->delivery_ns(message);
            if (message.bytes >= model_->overlap_bytes)
                return overlapped_ready(m);
        }
        return stock_ready(m, transfers_[m].receive_ns);
    }

    double collective_ready(std::size_t rank, std::size_t idx) const
    {
        const zct::collective_call &c = r_.run_.ranks[rank].collectives[idx];
        const zct::communicator &comm = r_.run_.communicators[c.comm];
        const std::int32_t self = r_.run_.ranks[rank].rank;
        const needs need = comm.remote.empty() ? needs_of(c.kind) : needs::nothing;
        if (need == needs::nothing || (need == needs::all_at_root && self != c.root))
            return kAtOnce;
        const auto begun = begun_.find({c.comm, c.nth});
        double ready = kAtOnce;
        for (const std::int32_t member : comm.members) {
            if (need == needs::those_before && member == self)
                break;
            if ((need == needs::root && member != c.root) || !present_.contains(member))
                continue;
            const auto found = begun->second.find(member);
            if (found == begun->second.end())
                return kUnknown;
            ready = std::max(ready, found->second);
        }
        return ready;
    }

    /** When all that a call waits for is there. */
    double ready_at(std::size_t rank, const step &s, bool forced) const
    {
        double ready = kAtOnce;
        const auto wait_for = [&](double moment) {
            ready = std::isnan(ready) || std::isnan(moment) ? kUnknown : std::max(ready, moment);
        };
        for (const std::size_t m : s.sends)
            wait_for(send_ready(m, forced));
        for (const std::size_t m : s.receives)
            wait_for(receive_ready(m));
        for (const std::size_t c : s.collectives)
            wait_for(collective_ready(rank, c));
        return ready;
    }

    const replay &r_;
    const zc_model *model_;
    std::set<std::int32_t> present_; /* world ranks that were recorded */
    std::vector<moments> moments_;
    std::vector<transfer> transfers_;
    std::vector<std::vector<double>> overhead_; /* of each call of a rank */
    std::vector<double> link_free_;
    std::vector<state> ranks_;
    std::map<call_key, std::map<std::int32_t, double>> begun_;
};

namespace {

/** The least size at which senders were held, as the unexpected messages show. */
std::uint64_t least_held(const std::vector<message> &messages, bool one_host)
{
    std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> sizes; /* eager, held */
    std::size_t nr_eager = 0;
    for (const message &m : messages) {
        if (m.one_host != one_host || !m.unexpected() || m.send.call == kNoCall)
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

std::optional<std::vector<std::int64_t>> replay::with(const zc_model &model) const
{
    return replay_pass(*this, &model).play();
}

} // namespace zc::forecast
