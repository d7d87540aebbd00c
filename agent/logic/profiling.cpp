/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiling.h"

#include <algorithm>
#include <cmath>

namespace zc::agent {
namespace {

constexpr double kTimeConstant = 3.0; /* seconds, of the smoothed demand of others */
constexpr double kQuick = 1.0;
constexpr nanos kFirstMoments = 3 * kSecond; /* ranks seen so soon were here before us */
constexpr nanos kLinger = 15 * kSecond;      /* moved ranks may still be seen for so long */

} // namespace

double pace(double demand, double cpus, double speed)
{
    constexpr double kLeast = 1e-3;
    return std::max(1.0, demand / std::max(cpus, kLeast)) / std::max(speed, kLeast);
}

load_digest beside(const load_digest &mine, load_digest other)
{
    constexpr float kLeast = 1e-3f;
    other.speed = std::max(other.speed, kLeast) / std::max(mine.speed, kLeast);
    return other;
}

void profiling::start(nanos now, nanos quarantine, bool draining)
{
    started_ = now;
    quarantine_ = quarantine;
    load_.draining = draining;
}

std::uint32_t profiling::ranks_here() const
{
    return static_cast<std::uint32_t>(std::count_if(
        ranks_.begin(), ranks_.end(), [](const auto &r) { return !r.second.leaving; }));
}

std::uint32_t profiling::ranks_running() const
{
    return static_cast<std::uint32_t>(
        std::count_if(ranks_.begin(), ranks_.end(),
                      [](const auto &r) { return !r.second.leaving && !r.second.profile.idle; }));
}

std::uint32_t profiling::expected() const
{
    std::size_t count = 0;
    for (const auto &[txn, a] : arrivals_)
        count += a.homes.size();
    return static_cast<std::uint32_t>(count);
}

bool profiling::is_disturbed() const
{
    return sampled_ &&
           std::any_of(jobs_.begin(), jobs_.end(), [](const auto &job) { return job.second.busy; });
}

void profiling::on_load(nanos now, const load_sample &sample)
{
    if (is_disturbed()) {
        load_ = sample;
        last_sample_ = now;
        lows_.assign(1, {now, quick_});
        overloaded_since_ = kNever;
        return;
    }
    const auto idle = std::count_if(ranks_.begin(), ranks_.end(),
                                    [](const auto &r) { return r.second.profile.idle; });
    const auto ours = static_cast<double>(ranks_.size()) - static_cast<double>(idle);
    double others = std::max(0.0, sample.demand - ours);
    if (!sampled_) {
        external_ = quick_ = others;
    } else {
        auto weight = [&](double constant) {
            return 1 - std::exp(-to_seconds(now - last_sample_) / constant);
        };
        external_ += (others - external_) * weight(kTimeConstant);
        quick_ += (others - quick_) * weight(kQuick);
    }
    sampled_ = true;
    last_sample_ = now;
    load_ = sample;
    while (!lows_.empty() && lows_.back().demand >= quick_)
        lows_.pop_back();
    lows_.push_back({now, quick_});
    while (lows_.front().time < now - s_.settle)
        lows_.pop_front();
    const double bearable = s_.decision == "threshold" ? 1 / s_.threshold : 1 + s_.hysteresis;
    bool overloaded = ranks_here() > 0 && (load_.draining || own_pace() * load_.speed > bearable);
    if (!overloaded)
        overloaded_since_ = kNever;
    else if (overloaded_since_ == kNever)
        overloaded_since_ = now;

    double per_cpu = demand() / std::max(load_.cpus, 1e-3) + (load_.draining ? 1000 : 0);
    if (reference_ < 0 || std::abs(per_cpu - reference_) > 0.25 * std::max(reference_, 0.5)) {
        reference_ = per_cpu;
        generation_++;
    }
}

nanos profiling::overloaded_for(nanos now) const
{
    return overloaded_since_ == kNever ? 0 : std::max<nanos>(now - overloaded_since_, 1);
}

void profiling::on_rank(nanos now, const rank_profile &profile)
{
    auto [at, is_new] = ranks_.try_emplace(profile.key);
    local_rank &rank = at->second;
    if (is_new) {
        rank.arrived = now;
        bool was_here_before_us = now - started_ <= kFirstMoments;
        if (was_here_before_us && quarantine_ > 0)
            rank.not_before = started_ + quarantine_;
        /* In a later world than the first, a new rank was moved here, by an operator unless
           an agent announced it below. It stays as long as one that an agent moved. */
        if (!was_here_before_us && profile.epoch > 1)
            rank.moves = 1;
        for (auto &[txn, a] : arrivals_) {
            if (a.job != profile.key.job)
                continue;
            if (auto coming = a.homes.extract(profile.key.rank)) {
                /* What it has taken of the memory the kernel tells. */
                a.bytes -= a.bytes / (a.homes.size() + 1);
                rank.came_from = coming.mapped();
                rank.moves = a.moves + 1;
            }
        }
    } else if (rank.leaving && profile.epoch > rank.profile.epoch) {
        rank.leaving = false; /* it lives here in the new world: it did not go after all */
    }
    rank.profile = profile;
    rank.last_seen = now;
}

void profiling::on_rank_gone(const rank_key &key)
{
    ranks_.erase(key);
}

void profiling::on_job_gone(job_id job)
{
    jobs_.erase(job);
    std::erase_if(ranks_, [&](const auto &r) { return r.first.job == job; });
}

void profiling::expect(const txn_id &txn, job_id job, const std::vector<traveller> &ranks,
                       std::uint64_t bytes, std::uint32_t moves, nanos until)
{
    std::map<rank_id, node_id> homes;
    for (const traveller &m : ranks)
        homes.emplace(m.rank, m.home);
    arrivals_[txn] = {job, std::move(homes), bytes, moves, until};
}

void profiling::expected_over(nanos now, const txn_id &txn, bool moved)
{
    auto at = arrivals_.find(txn);
    if (at == arrivals_.end())
        return;
    if (moved)
        at->second.until = std::min(at->second.until, now + kLinger); /* until they are seen */
    else
        arrivals_.erase(at);
}

bool profiling::comes_from(const txn_id &txn, const rank_key &rank, node_id home) const
{
    if (auto at = arrivals_.find(txn); at != arrivals_.end() && at->second.job == rank.job) {
        const auto &homes = at->second.homes;
        if (auto to_come = homes.find(rank.rank); to_come != homes.end())
            return to_come->second == home;
    }
    auto here = ranks_.find(rank);
    return here != ranks_.end() && here->second.came_from == home;
}

void profiling::expire(nanos now)
{
    std::erase_if(arrivals_,
                  [&](const auto &a) { return now >= a.second.until || a.second.homes.empty(); });
    for (auto &[key, rank] : ranks_) {
        if (rank.leaving && now - rank.leaving_since > kLinger &&
            rank.last_seen > rank.leaving_since)
            rank.leaving = false;
    }
}

void profiling::mark_leaving(nanos now, const rank_key &key)
{
    auto at = ranks_.find(key);
    if (at == ranks_.end())
        return;
    at->second.leaving = true;
    at->second.leaving_since = now;
}

double profiling::demand() const
{
    return external_ + ranks_running() + expected();
}

double profiling::own_pace() const
{
    return ranks_here() == 0 ? 0 : pace(demand(), load_.cpus, load_.speed);
}

std::uint32_t profiling::capacity() const
{
    if (s_.max_ranks > 0)
        return s_.max_ranks;
    return static_cast<std::uint32_t>(std::clamp(load_.cpus * s_.oversubscribe, 1.0, 1e6));
}

load_digest profiling::digest() const
{
    std::uint32_t taken = ranks_here() + expected();
    std::uint64_t promised = 0;
    for (const auto &[txn, a] : arrivals_)
        promised += a.bytes;
    load_digest d;
    d.cpus = static_cast<float>(load_.cpus);
    d.demand = static_cast<float>(demand());
    d.speed = static_cast<float>(load_.speed);
    d.ranks = taken;
    d.room = sampled_ && !load_.draining && capacity() > taken ? capacity() - taken : 0;
    if (load_.free_bytes > 0) /* else it is not known */
        d.free_bytes = load_.free_bytes > promised ? load_.free_bytes - promised : 1;
    d.draining = load_.draining;
    return d;
}

load_digest profiling::lasting() const
{
    load_digest d = digest();
    if (!lows_.empty())
        d.demand =
            static_cast<float>(demand() - external_ + std::min(external_, lows_.front().demand));
    return d;
}

std::set<std::string> profiling::hosts() const
{
    std::set<std::string> all;
    for (const auto &[id, job] : jobs_)
        all.insert(job.hosts.begin(), job.hosts.end());
    return all;
}

const job_view *profiling::job(job_id job) const
{
    auto at = jobs_.find(job);
    return at == jobs_.end() ? nullptr : &at->second;
}

} // namespace zc::agent
