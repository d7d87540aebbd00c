/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "calls_by_end.h"

namespace zc::forecast {

namespace {

std::int64_t positive(std::int64_t ns)
{
    return std::max<std::int64_t>(ns, 0);
}

/** Finds the calls of a rank that saw its sends and receives complete. */
class call_index {
  public:
    explicit call_index(const zct::rank_trace &rank) : rank_(rank), by_end_(rank.calls)
    {
        for (std::size_t i = 0; i < rank.sends.size(); i++)
            if (rank.sends[i].number >= 0)
                set(sends_, static_cast<std::uint64_t>(rank.sends[i].number), i);
        for (std::size_t i = 0; i < rank.calls.size(); i++)
            for (const std::uint64_t number : rank.calls[i].sends)
                set(by_send_, number, i);
    }

    const zct::send *sent(std::int64_t number) const
    {
        const std::size_t found = get(sends_, static_cast<std::uint64_t>(number));
        return found == kNoCall ? nullptr : &rank_.sends[found];
    }

    message_end end_of_send(std::size_t rank, const zct::send &send) const
    {
        message_end end{rank, send.site, kNoCall, send.sent_ns, send.sent_ns, send.sent_ns};
        end.call = get(by_send_, static_cast<std::uint64_t>(send.number));
        if (end.call != kNoCall) {
            end.waiting_ns = std::max(rank_.calls[end.call].begin_ns, send.sent_ns);
            end.done_ns = rank_.calls[end.call].end_ns;
        }
        return end;
    }

    message_end end_of_receive(std::size_t rank, const zct::receive &r) const
    {
        message_end end{rank, r.site, by_end_.at(r.done_ns), r.posted_ns, r.done_ns, r.done_ns};
        if (end.call != kNoCall)
            end.waiting_ns = std::max(rank_.calls[end.call].begin_ns, r.posted_ns);
        return end;
    }

  private:
    /* By number of the send: a rank numbers them from 0. */
    static void set(std::vector<std::size_t> &of, std::uint64_t number, std::size_t place)
    {
        if (of.size() <= number)
            of.resize(number + 1, kNoCall);
        of[number] = place;
    }
    static std::size_t get(const std::vector<std::size_t> &of, std::uint64_t number)
    {
        return number < of.size() ? of[number] : kNoCall;
    }

    const zct::rank_trace &rank_;
    calls_by_end by_end_;
    std::vector<std::size_t> by_send_;
    std::vector<std::size_t> sends_;
};

} // namespace

std::int64_t message::held_ns() const
{
    if (!unexpected() || surely_eager() || send.call == kNoCall)
        return 0;
    return positive(std::min(send.done_ns, receive.posted_ns) - send.waiting_ns);
}

std::int64_t message::transfer_wait_ns() const
{
    return unexpected() ? positive(receive.done_ns - receive.waiting_ns) : 0;
}

std::int64_t message::sender_wait_ns() const
{
    return positive(std::min(send.posted_ns, receive.done_ns) - receive.waiting_ns);
}

std::int64_t message::lost_overlap_ns() const
{
    const std::int64_t start = std::max(send.posted_ns, receive.posted_ns);
    std::int64_t lost = 0;
    for (const message_end *end : {&send, &receive})
        if (end->call != kNoCall)
            lost += std::min(positive(end->waiting_ns - start),
                             positive(end->done_ns - end->waiting_ns));
    return lost;
}

std::vector<message> messages_of(const zct::run &run, const prediction &prediction)
{
    std::unordered_map<std::int32_t, std::size_t> place;
    std::vector<call_index> calls;
    for (std::size_t i = 0; i < run.ranks.size(); i++) {
        place[run.ranks[i].rank] = i;
        calls.emplace_back(run.ranks[i]);
    }
    std::map<std::string, std::size_t> hosts;
    for (const zct::rank_trace &rank : run.ranks)
        hosts.emplace(rank.host, hosts.size());
    std::vector<message> messages;
    std::size_t most = 0;
    for (const zct::rank_trace &rank : run.ranks)
        most += static_cast<std::size_t>(
            std::count_if(rank.receives.begin(), rank.receives.end(),
                          [](const zct::receive &r) { return r.send_number >= 0; }));
    messages.reserve(most);
    for (std::size_t i = 0; i < run.ranks.size(); i++) {
        std::size_t row = 0;
        for (const zct::receive &r : run.ranks[i].receives) {
            if (r.kind != ZCT_P2P)
                continue;
            const answer foreseen =
                prediction.answers.empty() ? answer::not_asked : prediction.answers[i][row++];
            const auto source = place.find(r.source);
            if (r.send_number < 0 || source == place.end())
                continue;
            const zct::send *send = calls[source->second].sent(r.send_number);
            if (!send)
                continue;
            messages.push_back({r.bytes, run.ranks[source->second].host == run.ranks[i].host,
                                calls[source->second].end_of_send(source->second, *send),
                                calls[i].end_of_receive(i, r)});
            messages.back().synchronous = send->synchronous;
            messages.back().foreseen = foreseen;
            messages.back().send.host = hosts[run.ranks[source->second].host];
            messages.back().receive.host = hosts[run.ranks[i].host];
        }
    }
    return messages;
}

} // namespace zc::forecast
