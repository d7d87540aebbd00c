/* SPDX-License-Identifier: BSD-3-Clause */
#include "synthetic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace zc::groups {

uint64_t dice::next()
{
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

namespace {

constexpr uint64_t kTaskBytes = 4096;
constexpr uint64_t kAnswerBytes = 65536;
constexpr uint64_t kEdgeBytes = 16384;
constexpr uint64_t kShortEdgeBytes = 4096;
constexpr uint64_t kStageBytes = 65536;

/** Collects events of a run; one per microsecond. */
class writer {
  public:
    writer(const char *name, const recipe &r) : recipe_(r), dice_(r.seed)
    {
        out_.name = name;
        out_.ranks = r.ranks;
        out_.events.reserve(r.events);
    }

    bool full() const { return out_.events.size() >= recipe_.events; }
    dice &random() { return dice_; }

    void add(uint32_t src, uint32_t dst, uint64_t bytes)
    {
        if (full() || src == dst)
            return;
        if (recipe_.noise > 0 && dice_.real() < recipe_.noise) {
            src = dice_.below(recipe_.ranks);
            dst = dice_.below(recipe_.ranks - 1);
            dst += dst >= src ? 1 : 0;
        }
        out_.events.push_back({src, dst, bytes, 0, 0, 0});
    }

    event_stream finish()
    {
        if (recipe_.jitter > 0)
            delay();
        for (size_t i = 0; i < out_.events.size(); i++)
            out_.events[i].time_ns = 1000 * (i + 1);
        return std::move(out_);
    }

  private:
    void delay()
    {
        std::vector<double> latest(recipe_.ranks, 0.0);
        std::vector<double> due(out_.events.size());
        for (size_t i = 0; i < due.size(); i++) {
            double &own = latest[out_.events[i].src];
            own = std::max(own, static_cast<double>(i) + recipe_.jitter * dice_.real());
            due[i] = own;
        }
        std::vector<size_t> order(due.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&due](size_t a, size_t b) { return due[a] < due[b]; });
        std::vector<zcp_event_t> sorted;
        sorted.reserve(order.size());
        for (const size_t i : order)
            sorted.push_back(out_.events[i]);
        out_.events.swap(sorted);
    }

    recipe recipe_;
    dice dice_;
    event_stream out_;
};

struct exchange {
    uint32_t a;
    uint32_t b;
    uint64_t bytes;
};

/** Pairs of a mesh cut into pieces: a grid and one long-range pair per four ranks. */
std::vector<exchange> mesh(uint32_t ranks, dice &random)
{
    uint32_t columns = static_cast<uint32_t>(std::lround(std::sqrt(ranks)));
    while (columns > 1 && ranks % columns != 0)
        columns--;
    std::vector<exchange> out;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if ((rank + 1) % columns != 0)
            out.push_back({rank, rank + 1, kEdgeBytes});
        if (rank + columns < ranks)
            out.push_back({rank, rank + columns, kEdgeBytes});
    }
    for (uint32_t i = 0; i < ranks / 4; i++) {
        const uint32_t a = random.below(ranks);
        const uint32_t b = random.below(ranks);
        if (a != b)
            out.push_back({a, b, kShortEdgeBytes});
    }
    return out;
}

void iterate(writer &out, const std::vector<exchange> &pairs)
{
    for (const exchange &e : pairs)
        out.add(e.a, e.b, e.bytes);
    for (const exchange &e : pairs)
        out.add(e.b, e.a, e.bytes);
}

void transform(writer &out, uint32_t ranks)
{
    for (uint32_t distance = 1; distance < ranks; distance *= 2) {
        for (uint32_t rank = 0; rank < ranks; rank++)
            out.add(rank, rank ^ distance, kStageBytes);
    }
}

} // namespace

event_stream master_slave(const recipe &r)
{
    writer out("master-slave", r);
    while (!out.full()) {
        for (uint32_t worker = 1; worker < r.ranks; worker++)
            out.add(0, worker, kTaskBytes);
        for (uint32_t worker = 1; worker < r.ranks; worker++)
            out.add(worker, 0, kAnswerBytes);
    }
    return out.finish();
}

event_stream master_slave_phases(const recipe &r, uint32_t shares, uint32_t steps)
{
    writer out("master-slave-phases", r);
    while (!out.full()) {
        for (uint32_t share = 0; share < shares; share++) {
            for (uint32_t worker = 1; worker < r.ranks; worker++)
                out.add(0, worker, kTaskBytes);
        }
        for (uint32_t step = 0; step < steps; step++) {
            for (uint32_t worker = 1; worker < r.ranks; worker++)
                out.add(worker, worker % (r.ranks - 1) + 1, kEdgeBytes);
        }
        for (uint32_t worker = 1; worker < r.ranks; worker++)
            out.add(worker, 0, kAnswerBytes);
    }
    return out.finish();
}

event_stream fem(const recipe &r)
{
    writer out("fem", r);
    const auto pairs = mesh(r.ranks, out.random());
    while (!out.full())
        iterate(out, pairs);
    return out.finish();
}

event_stream butterfly(const recipe &r)
{
    writer out("butterfly", r);
    while (!out.full())
        transform(out, r.ranks);
    return out.finish();
}

event_stream phases(const recipe &r, uint32_t first, uint32_t second)
{
    writer out("phases", r);
    const auto pairs = mesh(r.ranks, out.random());
    while (!out.full()) {
        for (uint32_t i = 0; i < first; i++)
            iterate(out, pairs);
        for (uint32_t i = 0; i < second; i++)
            transform(out, r.ranks);
    }
    return out.finish();
}

event_stream drifting(const recipe &r, size_t lasting)
{
    writer out("drifting", r);
    std::vector<exchange> pairs;
    for (size_t i = 0; !out.full(); i++) {
        if (i * r.ranks % std::max<size_t>(lasting, 1) < r.ranks) {
            pairs.clear();
            for (uint32_t rank = 0; rank < r.ranks; rank++)
                pairs.push_back({rank, out.random().below(r.ranks), kEdgeBytes});
        }
        for (const exchange &e : pairs)
            out.add(e.a, e.b, e.bytes);
    }
    return out.finish();
}

event_stream random_pairs(const recipe &r)
{
    writer out("random", r);
    while (!out.full())
        out.add(out.random().below(r.ranks), out.random().below(r.ranks), kEdgeBytes);
    return out.finish();
}

} // namespace zc::groups
