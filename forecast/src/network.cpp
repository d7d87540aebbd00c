/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include <algorithm>
#include <map>

namespace zc::forecast {

namespace {

constexpr std::uint64_t kLargeBytes = 64 << 10;
constexpr std::uint64_t kSmallBytes = 4096;
/* A quarter of them needs not be an accident. */
constexpr std::size_t kLeastSamples = 4;

double quantile(std::vector<double> &values, double share)
{
    const auto nth = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(nth),
                     values.end());
    return values[nth];
}

/** From when both sides were in a call that waits. */
struct transfer {
    std::size_t message;
    std::int64_t begin;
    std::int64_t end;
};

/** When it came to its first call that waits: there the MPI library makes progress with the
 * message, though another call may see it complete. */
std::int64_t in_mpi_ns(const zct::run &run, const message_end &end)
{
    const std::vector<zct::call> &calls = run.ranks[end.rank].calls;
    const auto first = std::partition_point(
        calls.begin(), calls.end(), [&](const zct::call &c) { return c.end_ns <= end.posted_ns; });
    return first == calls.end() ? end.waiting_ns : std::max(first->begin_ns, end.posted_ns);
}

/** The side that waited for fewer others saw the end first. */
transfer transfer_of(const zct::run &run, const std::vector<message> &messages, std::size_t m)
{
    const message_end &send = messages[m].send;
    const message_end &receive = messages[m].receive;
    return {m, std::max(in_mpi_ns(run, send), in_mpi_ns(run, receive)),
            std::min(send.done_ns, receive.done_ns)};
}

/** Raises the rates of the messages to that of one of their links. */
void raise_rates(const std::vector<message> &messages, std::vector<transfer> &on_link,
                 std::vector<double> &rates)
{
    std::sort(on_link.begin(), on_link.end(),
              [](const transfer &a, const transfer &b) { return a.begin < b.begin; });
    for (std::size_t i = 0; i < on_link.size();) {
        std::int64_t end = on_link[i].end;
        std::uint64_t bytes = 0;
        std::size_t next = i;
        for (; next < on_link.size() && on_link[next].begin < end; next++) {
            end = std::max(end, on_link[next].end);
            bytes += messages[on_link[next].message].bytes;
        }
        const double rate =
            static_cast<double>(bytes) / static_cast<double>(end - on_link[i].begin);
        for (; i < next; i++)
            rates[on_link[i].message] = std::max(rates[on_link[i].message], rate);
    }
}

void measure_rates(const zct::run &run, const std::vector<message> &messages, network &n)
{
    std::map<std::size_t, std::vector<transfer>> sent; /* by host */
    std::map<std::size_t, std::vector<transfer>> received;
    n.rates.resize(messages.size());
    for (std::size_t i = 0; i < messages.size(); i++) {
        const message &m = messages[i];
        const transfer t = transfer_of(run, messages, i);
        if (m.bytes < kLargeBytes || m.surely_eager() || m.send.call == kNoCall ||
            m.receive.call == kNoCall || t.end <= t.begin)
            continue;
        if (m.one_host) {
            n.rates[i] = static_cast<double>(m.bytes) / static_cast<double>(t.end - t.begin);
        } else {
            sent[m.send.host].push_back(t);
            received[m.receive.host].push_back(t);
        }
    }
    for (auto *direction : {&sent, &received})
        for (auto &[host, on_link] : *direction)
            raise_rates(messages, on_link, n.rates);
}

/** Transfers of one direction, in order of their beginnings. */
class direction {
  public:
    void add(const transfer &t) { transfers_.push_back(t); }

    void sort()
    {
        std::sort(transfers_.begin(), transfers_.end(),
                  [](const transfer &a, const transfer &b) { return a.begin < b.begin; });
        for (const transfer &t : transfers_)
            ends_.push_back(ends_.empty() ? t.end : std::max(ends_.back(), t.end));
    }

    /** Is one under way at some time of @t? */
    bool crosses(const transfer &t) const
    {
        const auto next =
            std::lower_bound(transfers_.begin(), transfers_.end(), t.begin,
                             [](const transfer &a, std::int64_t begin) { return a.begin < begin; });
        const auto nr_before = static_cast<std::size_t>(next - transfers_.begin());
        return (next != transfers_.end() && next->begin < t.end) ||
               (nr_before > 0 && ends_[nr_before - 1] > t.begin);
    }

    const std::vector<transfer> &transfers() const { return transfers_; }

  private:
    std::vector<transfer> transfers_;
    std::vector<std::int64_t> ends_; /* the latest up to each */
};

void find_crossed(const zct::run &run, const std::vector<message> &messages, network &n)
{
    std::map<std::pair<std::size_t, std::size_t>, direction> directions;
    for (std::size_t i = 0; i < messages.size(); i++)
        if (!messages[i].one_host && n.rates[i] > 0)
            directions[{messages[i].send.rank, messages[i].receive.rank}].add(
                transfer_of(run, messages, i));
    for (auto &[ranks, one_way] : directions)
        one_way.sort();
    n.crossed.resize(messages.size());
    for (const auto &[ranks, one_way] : directions) {
        const auto other_way = directions.find({ranks.second, ranks.first});
        if (other_way == directions.end())
            continue;
        for (const transfer &t : one_way.transfers())
            n.crossed[t.message] = other_way->second.crosses(t);
    }
}

void sum_up(const std::vector<message> &messages, const std::vector<double> &all, bool one_host,
            network::path &path)
{
    std::vector<double> small;
    std::vector<double> rates;
    for (std::size_t i = 0; i < messages.size(); i++) {
        const message &m = messages[i];
        if (m.one_host != one_host)
            continue;
        const std::int64_t taken =
            m.receive.done_ns - std::max(m.send.waiting_ns, m.receive.waiting_ns);
        if (all[i] > 0)
            rates.push_back(all[i]);
        else if (m.bytes < kSmallBytes && !m.unexpected() && m.receive.call != kNoCall &&
                 m.send.call != kNoCall && taken > 0)
            small.push_back(static_cast<double>(taken));
    }
    if (small.size() >= kLeastSamples)
        path.latency_ns = quantile(small, 0.5);
    if (rates.size() < kLeastSamples)
        return;
    path.slow = quantile(rates, 0.25);
    path.usual = quantile(rates, 0.5);
    path.fast = quantile(rates, 0.75);
    path.samples = rates.size();
}

} // namespace

network measure_network(const zct::run &run, const std::vector<message> &messages)
{
    network n;
    measure_rates(run, messages, n);
    find_crossed(run, messages, n);
    sum_up(messages, n.rates, false, n.remote);
    sum_up(messages, n.rates, true, n.local);
    return n;
}

} // namespace zc::forecast
