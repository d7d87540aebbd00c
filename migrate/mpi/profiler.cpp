/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>

#include "job.h"

namespace zc::migrate {

/* Called by MPI when a communicator goes that we have a table of. */
int forget_table(MPI_Comm, int, void *value, void *)
{
    profiler &p = profiler::instance();
    const auto guard = p.lock();
    p.last_comm_ = MPI_COMM_NULL;
    p.last_ = nullptr;
    delete static_cast<profiler::table *>(value);
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
    /* Tables that are left go with their communicators. */
    if (keyval_ != MPI_KEYVAL_INVALID)
        MPI_Comm_free_keyval(&keyval_);
    persistent_.clear();
}

void profiler::link(MPI_Comm world)
{
    std::vector<int> ranks(static_cast<std::size_t>(mine(world).size));
    std::iota(ranks.begin(), ranks.end(), 0);
    keep(world, std::move(ranks));
}

/** Each other's numbers in the job. Collective. */
void profiler::introduce(MPI_Comm comm)
{
    std::vector<int> ranks(static_cast<std::size_t>(others(comm)));
    PMPI_Allgather(&rank_, 1, MPI_INT, ranks.data(), 1, MPI_INT, comm);
    keep(comm, std::move(ranks));
}

void profiler::adopt(MPI_Comm parent, MPI_Comm comm)
{
    bool known = false;
    {
        const auto guard = lock();
        known = table_of(parent) != nullptr;
    }
    if (known && comm != MPI_COMM_NULL)
        introduce(comm);
}

void profiler::adopt(MPI_Comm local, int leader, MPI_Comm bridge, MPI_Comm comm)
{
    int known = 0;
    {
        const auto guard = lock();
        if (!table_of(local))
            return;
        known = mine(local).rank == leader && table_of(bridge) != nullptr;
    }
    PMPI_Bcast(&known, 1, MPI_INT, leader, local);
    if (known)
        introduce(comm);
}

void profiler::keep(MPI_Comm comm, std::vector<int> ranks)
{
    auto made = std::make_unique<table>(table{std::move(ranks)});
    if (PMPI_Comm_set_attr(comm, keyval_, made.get()) == MPI_SUCCESS)
        made.release();
    const auto guard = lock();
    last_comm_ = MPI_COMM_NULL;
}

void profiler::place(std::uint64_t epoch, const std::vector<std::string> &host_of_rank)
{
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

const profiler::table *profiler::table_of(MPI_Comm comm)
{
    if (keyval_ == MPI_KEYVAL_INVALID)
        return nullptr;
    if (comm == last_comm_)
        return last_;
    void *kept = nullptr;
    int found = 0;
    if (PMPI_Comm_get_attr(comm, keyval_, &kept, &found) != MPI_SUCCESS)
        return nullptr;
    last_comm_ = comm;
    last_ = found ? static_cast<table *>(kept) : nullptr;
    return last_;
}

void profiler::told(int peer, std::uint64_t bytes, moment &when)
{
    if (peer >= 0 && static_cast<std::uint32_t>(peer) != profile_->rank)
        zcm_profile_sent(profile_, static_cast<std::uint32_t>(peer), bytes, when.ns());
}

void profiler::sent(MPI_Comm comm, int peer, std::uint64_t bytes, moment &when)
{
    const auto guard = lock();
    const table *ranks = counts() ? table_of(comm) : nullptr;
    if (ranks && peer >= 0 && static_cast<std::size_t>(peer) < ranks->ranks.size())
        told(ranks->ranks[static_cast<std::size_t>(peer)], bytes, when);
}

void profiler::sent_to_all(MPI_Comm comm, std::uint64_t bytes_each, moment &when)
{
    const auto guard = lock();
    const table *ranks = counts() ? table_of(comm) : nullptr;
    if (ranks)
        for (int peer : ranks->ranks)
            told(peer, bytes_each, when);
}

void profiler::remember(MPI_Request request, MPI_Comm comm, int peer, std::uint64_t bytes)
{
    const auto guard = lock();
    const table *ranks = profile_ ? table_of(comm) : nullptr;
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
