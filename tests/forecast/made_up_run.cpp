/* SPDX-License-Identifier: BSD-3-Clause */
#include "made_up_run.h"

#include <algorithm>
#include <numeric>

#include "model.h"

namespace zc::forecast::test {

made_up_run::made_up_run(std::int32_t processes)
{
    run_.program = "program";
    run_.mpi = "some MPI";
    run_.processes = processes;
    run_.communicators.resize(1);
    run_.communicators[0].members.resize(static_cast<std::size_t>(processes));
    std::iota(run_.communicators[0].members.begin(), run_.communicators[0].members.end(), 0);
    for (std::int32_t i = 0; i < processes; i++) {
        zct::rank_trace rank{};
        rank.rank = i;
        rank.complete = true;
        rank.has_calls = true;
        rank.host = "host" + std::to_string(i);
        rank.sites = {{0x5000, 0x1000, "", "send"},
                      {0x6000, 0x2000, "", "receive"},
                      {0x7000, 0x3000, "", "other_send"},
                      {0x8000, 0x4000, "", "other_receive"}};
        rank.calls.push_back({0, 0, ZCT_FUNCTION_INIT, 0, {}});
        run_.ranks.push_back(rank);
    }
}

void made_up_run::call(zct::rank_trace &rank, zct_function function, std::int64_t begin,
                       std::int64_t end, std::vector<std::uint64_t> sends)
{
    const auto same = std::find_if(rank.calls.begin(), rank.calls.end(), [&](const zct::call &c) {
        return c.begin_ns == begin && c.end_ns == end;
    });
    if (same == rank.calls.end())
        rank.calls.push_back({begin, end, function, 0, std::move(sends)});
    else
        same->sends.insert(same->sends.end(), sends.begin(), sends.end());
}

void made_up_run::message(std::int32_t source, std::int32_t dest, std::uint64_t bytes,
                          const message_times &t, std::uint64_t addr)
{
    zct::rank_trace &from = run_.ranks[static_cast<std::size_t>(source)];
    zct::rank_trace &to = run_.ranks[static_cast<std::size_t>(dest)];
    const std::uint64_t number = from.sends.size();
    from.sends.push_back(
        {t.sent, 0, dest, 5, bytes, ZCT_P2P, 0, static_cast<std::int64_t>(number)});
    call(from, t.send_waiting == t.sent ? ZCT_FUNCTION_SEND : ZCT_FUNCTION_WAIT, t.send_waiting,
         t.send_done, {number});
    zct::receive r{};
    r.source = source;
    r.tag = 5;
    r.bytes = bytes;
    r.addr = addr;
    r.kind = ZCT_P2P;
    r.collective = -1;
    r.posted_ns = t.posted;
    r.done_ns = t.received;
    r.sent_ns = t.sent;
    r.sent_known = true;
    r.site = 1;
    r.send_number = static_cast<std::int64_t>(number);
    to.receives.push_back(r);
    call(to, t.receive_waiting == t.posted ? ZCT_FUNCTION_RECEIVE : ZCT_FUNCTION_WAIT,
         t.receive_waiting, t.received, {});
}

void made_up_run::make_synchronous(std::int32_t source)
{
    run_.ranks[static_cast<std::size_t>(source)].sends.back().synchronous = true;
}

void made_up_run::move_to_other_sites(std::int32_t source, std::int32_t dest)
{
    run_.ranks[static_cast<std::size_t>(source)].sends.back().site = 2;
    run_.ranks[static_cast<std::size_t>(dest)].receives.back().site = 3;
}

void made_up_run::probe(std::int32_t rank, std::int64_t begin, std::int64_t end)
{
    call(run_.ranks[static_cast<std::size_t>(rank)], ZCT_FUNCTION_PROBE, begin, end, {});
}

void made_up_run::collective(zct_kind kind, std::int32_t root,
                             const std::vector<std::int64_t> &begin,
                             const std::vector<std::int64_t> &end)
{
    for (std::size_t i = 0; i < run_.ranks.size(); i++) {
        run_.ranks[i].collectives.push_back(
            {begin[i], end[i], true, kind, 0, root, nr_collectives_, 0});
        call(run_.ranks[i], ZCT_FUNCTION_COLLECTIVE, begin[i], end[i], {});
    }
    nr_collectives_++;
}

const zct::run &made_up_run::end(const std::vector<std::int64_t> &times)
{
    for (std::size_t i = 0; i < run_.ranks.size(); i++) {
        std::vector<zct::call> &calls = run_.ranks[i].calls;
        call(run_.ranks[i], ZCT_FUNCTION_FINALIZE, times[i], times[i], {});
        std::stable_sort(calls.begin(), calls.end(), [](const zct::call &a, const zct::call &b) {
            return a.end_ns < b.end_ns;
        });
    }
    return run_;
}

prediction prediction_of(const zct::run &run)
{
    prediction result;
    for (const zct::rank_trace &rank : run.ranks)
        predict(rank, zc_model().announce_local, result);
    return result;
}

forecast forecast_of(const zct::run &run)
{
    const prediction foreseen = prediction_of(run);
    return make_forecast(run, messages_of(run, foreseen), site_names(run), foreseen.total, 10);
}

} // namespace zc::forecast::test
