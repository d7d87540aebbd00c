/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "job.h"

namespace zc::migrate {

/* Called by MPI when a communicator goes that we have a table of. */
int forget_table(MPI_Comm comm, int, void *, void *)
{
    profiler &p = profiler::instance();
    const auto guard = p.lock();
    p.last_comm_ = MPI_COMM_NULL;
    p.last_ = nullptr;
    p.tables_.erase(comm);
    return MPI_SUCCESS;
}

profiler &profiler::instance()
{
    /* Never destroyed: wrappers may be called until the process is gone. */
    static profiler *const one = new profiler;
    return *one;
}

void profiler::hush(int by)
{
    quiet_ += by;
    counts_ = profile_ && quiet_ == 0;
}

std::unique_lock<std::mutex> profiler::lock()
{
    return threads_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
}

void profiler::open(const identity &who, int rank, int size, std::uint32_t flags)
{
    int threads = MPI_THREAD_SINGLE;
    MPI_Query_thread(&threads);
    threads_ = threads == MPI_THREAD_MULTIPLE;
    rank_ = rank;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_table, &keyval_, nullptr);
    const int code = zcm_profile_create(
        nullptr, who.job, who.name.c_str(), static_cast<std::uint32_t>(rank),
        static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(size), &profile_);
    if (code != 0) {
        profile_ = nullptr;
        if (rank == 0)
            complain(0, std::string("agents will not see this job: no profile: ") +
                            std::strerror(-code));
        return;
    }
    zcm_profile_begin_(profile_);
    profile_->counters.start_ns -=
        std::min(profile_->counters.start_ns, static_cast<std::uint64_t>(who.age_s * 1e9));
    zcm_profile_end_(profile_);
    flags_ = flags;
    zcm_profile_flags(profile_, flags_);
    is_open_ = true;
    hush(0);
}

void profiler::close()
{
    const auto guard = lock();
    counts_ = is_open_ = false;
    zcm_profile_close(profile_, nullptr);
    profile_ = nullptr;
    last_comm_ = MPI_COMM_NULL;
    last_ = nullptr;
    tables_.clear();
    free_members();
    if (keyval_ != MPI_KEYVAL_INVALID)
        MPI_Comm_free_keyval(&keyval_);
    persistent_.clear();
}

void profiler::link(MPI_Comm world)
{
    const auto guard = lock();
    free_members();
    MPI_Group all;
    PMPI_Comm_group(world, &all);
    members_.resize(static_cast<std::size_t>(mine(world).size));
    for (int rank = 0; rank < static_cast<int>(members_.size()); rank++)
        PMPI_Group_incl(all, 1, &rank, &members_[static_cast<std::size_t>(rank)]);
    PMPI_Group_free(&all);
}

void profiler::free_members()
{
    for (MPI_Group &one : members_)
        PMPI_Group_free(&one);
    members_.clear();
}

/**
 * Without a word to others: who made @comm, and out of what, may differ from member to member
 * (MPI_Intercomm_create() of a split and MPI_COMM_SELF), so that nobody knows whether the others
 * would take part in asking. Members are compared one by one, as MPI_Group_translate_ranks() of
 * MPICH 4.0.2 takes processes of different worlds for each other (it keeps 32 of the 64 bits of
 * their numbers).
 */
profiler::table profiler::look_up(MPI_Comm comm) const
{
    MPI_Group all;
    if (is_inter(comm))
        PMPI_Comm_remote_group(comm, &all);
    else
        PMPI_Comm_group(comm, &all);
    table found;
    found.ranks.assign(static_cast<std::size_t>(others(comm)), -1);
    std::size_t begin = 0; /* the next rank, most often */
    for (int i = 0; i < static_cast<int>(found.ranks.size()); i++) {
        MPI_Group one;
        PMPI_Group_incl(all, 1, &i, &one);
        for (std::size_t tried = 0; tried < members_.size(); tried++) {
            const std::size_t rank = (begin + tried) % members_.size();
            int same = MPI_UNEQUAL;
            PMPI_Group_compare(one, members_[rank], &same);
            if (same != MPI_IDENT)
                continue;
            found.ranks[static_cast<std::size_t>(i)] = static_cast<int>(rank);
            begin = rank + 1;
            break;
        }
        PMPI_Group_free(&one);
    }
    PMPI_Group_free(&all);
    return found;
}

void profiler::place(std::uint64_t epoch, const std::vector<std::string> &host_of_rank)
{
    if (rank_ == 0 && !std::exchange(place_told_, true))
        if (const std::string why = why_not_runtime_directory(); !why.empty())
            complain(rank_, why);
    if (!profile_)
        return;
    std::map<std::string, std::uint32_t> index;
    std::vector<const char *> names;
    std::vector<std::uint32_t> host_of;
    for (const std::string &host : host_of_rank) {
        const auto [at, is_new] = index.try_emplace(host, static_cast<std::uint32_t>(names.size()));
        if (is_new)
            names.push_back(at->first.c_str());
        host_of.push_back(at->second);
    }
    zcm_profile_world(profile_, epoch, host_of.data(), names.data(),
                      static_cast<std::uint32_t>(names.size()));
}

void profiler::busy(bool is_busy)
{
    zcm_profile_flags(profile_, is_busy ? flags_ | ZCM_PROFILE_BUSY : flags_);
}

void profiler::spent(std::uint64_t ns)
{
    const auto guard = lock();
    zcm_profile_mpi(profile_, ns);
}

const profiler::table *profiler::table_of(MPI_Comm comm, std::unique_lock<std::mutex> &guard)
{
    if (comm == last_comm_)
        return last_;
    auto at = tables_.find(comm);
    if (at == tables_.end()) {
        if (comm == MPI_COMM_NULL || keyval_ == MPI_KEYVAL_INVALID)
            return nullptr;
        /* MPI calls forget_table() with locks of its own held, so ours is not held in MPI. */
        if (threads_)
            guard.unlock();
        table made = look_up(comm);
        const bool is_kept = PMPI_Comm_set_attr(comm, keyval_, nullptr) == MPI_SUCCESS;
        if (threads_)
            guard.lock();
        if (!is_kept)
            return nullptr;
        at = tables_.try_emplace(comm, std::move(made)).first;
    }
    last_comm_ = comm;
    last_ = &at->second;
    return last_;
}

void profiler::told(int peer, std::uint64_t bytes, moment &when)
{
    if (profile_ && peer >= 0 && static_cast<std::uint32_t>(peer) != profile_->rank)
        zcm_profile_sent(profile_, static_cast<std::uint32_t>(peer), bytes, when.ns());
}

void profiler::sent(MPI_Comm comm, int peer, std::uint64_t bytes, moment &when)
{
    auto guard = lock();
    const table *ranks = counts() ? table_of(comm, guard) : nullptr;
    if (ranks && peer >= 0 && static_cast<std::size_t>(peer) < ranks->ranks.size())
        told(ranks->ranks[static_cast<std::size_t>(peer)], bytes, when);
}

void profiler::sent_to_all(MPI_Comm comm, std::uint64_t bytes_each, moment &when)
{
    auto guard = lock();
    const table *ranks = counts() ? table_of(comm, guard) : nullptr;
    if (ranks)
        for (int peer : ranks->ranks)
            told(peer, bytes_each, when);
}

void profiler::remember(MPI_Request request, MPI_Comm comm, int peer, std::uint64_t bytes)
{
    auto guard = lock();
    const table *ranks = profile_ ? table_of(comm, guard) : nullptr;
    if (ranks && peer >= 0 && static_cast<std::size_t>(peer) < ranks->ranks.size())
        persistent_[request] = {ranks->ranks[static_cast<std::size_t>(peer)], bytes};
}

void profiler::started(std::span<const MPI_Request> requests, moment &when)
{
    const auto guard = lock();
    if (persistent_.empty() || !counts())
        return;
    for (const MPI_Request request : requests)
        if (const auto at = persistent_.find(request); at != persistent_.end())
            told(at->second.peer, at->second.bytes, when);
}

void profiler::forget(MPI_Request request)
{
    const auto guard = lock();
    if (!persistent_.empty())
        persistent_.erase(request);
}

profiler::place_in profiler::mine(MPI_Comm comm)
{
    place_in here{};
    PMPI_Comm_rank(comm, &here.rank);
    PMPI_Comm_size(comm, &here.size);
    return here;
}

bool profiler::is_inter(MPI_Comm comm)
{
    int answer = 0;
    return PMPI_Comm_test_inter(comm, &answer) == MPI_SUCCESS && answer;
}

int profiler::others(MPI_Comm comm)
{
    int size = 0;
    if (is_inter(comm))
        PMPI_Comm_remote_size(comm, &size);
    else
        PMPI_Comm_size(comm, &size);
    return size;
}

} // namespace zc::migrate
