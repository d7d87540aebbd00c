/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "layer.h"
#include "process.h"
#include "settings.h"

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

namespace {

/** Where a neighbour collective sends to: MPI knows. MPI_PROC_NULL included. */
members destinations_of(MPI_Comm real)
{
    members found;
    int kind = MPI_UNDEFINED, rank = 0, dims = 0, count = 0, in = 0, weighted = 0;
    PMPI_Topo_test(real, &kind);
    PMPI_Comm_rank(real, &rank);
    if (kind == MPI_CART) {
        PMPI_Cartdim_get(real, &dims);
        found.resize(2 * static_cast<std::size_t>(dims));
        for (int i = 0; i < dims; i++)
            PMPI_Cart_shift(real, i, 1, &found[2 * static_cast<std::size_t>(i)],
                            &found[2 * static_cast<std::size_t>(i) + 1]);
    } else if (kind == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(real, rank, &count);
        found.resize(static_cast<std::size_t>(count));
        PMPI_Graph_neighbors(real, rank, count, found.data());
    } else if (kind == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(real, &in, &count, &weighted);
        const auto most = static_cast<std::size_t>(std::max({in, count, 1}));
        members sources(most), weights(most), more(most);
        found.resize(most);
        PMPI_Dist_graph_neighbors(real, in, sources.data(), weights.data(), count, found.data(),
                                  more.data());
        found.resize(static_cast<std::size_t>(count));
    }
    return found;
}

} // namespace

profiler &profiler::instance()
{
    /* Never destroyed: wrappers may be called until the process is gone. */
    static profiler *const one = new profiler;
    return *one;
}

void profiler::open(const identity &who, int rank, int size, std::uint32_t flags)
{
    int threads = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&threads);
    threads_ = threads == MPI_THREAD_MULTIPLE;
    rank_ = rank;
    timespec tick{};
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 && tick.tv_sec == 0 && tick.tv_nsec > 0)
        tick_ns_ = static_cast<std::uint64_t>(tick.tv_nsec);
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_table, &keyval_, nullptr);
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
    counts_ = true;
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
    if (keyval_ != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&keyval_);
    persistent_.clear();
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

void profiler::spent(std::uint64_t begin, std::uint64_t end, bool is_fine)
{
    std::uint64_t ns = end - begin;
    if (is_fine)
        ns = (ns + tick_ns_ - 1) / tick_ns_ * tick_ns_;
    const auto guard = lock();
    zcm_profile_mpi(profile_, ns);
}

/* By rank in the communicator (in its remote group, if it has one): below 0 for a process that is
 * none of the job's. */
const members *profiler::table_of(comm_argument where, std::unique_lock<std::mutex> &guard)
{
    if (where.known()) [[likely]]
        return &where.known()->peers();
    return where.handle() == last_comm_ ? last_ : observed_table_of(where.handle(), guard);
}

/* Of a communicator of MPI's, in a program that is observed. */
const members *profiler::observed_table_of(MPI_Comm comm, std::unique_lock<std::mutex> &guard)
{
    auto at = tables_.find(comm);
    if (at == tables_.end()) {
        if (comm == MPI_COMM_NULL || keyval_ == MPI_KEYVAL_INVALID || layer::is_on())
            return nullptr;
        /* MPI calls forget_table() with locks of its own held, so ours is not held in MPI. */
        if (threads_)
            guard.unlock();
        members made = layer::instance().everyone().of(comm, is_inter(comm));
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

void profiler::sent_slowly(comm_argument where, int peer, std::uint64_t bytes, moment &when)
{
    auto guard = lock();
    if (const members *ranks = counts() ? table_of(where, guard) : nullptr)
        told(*ranks, peer, bytes, when);
}

void profiler::sent_to_all(comm_argument where, std::uint64_t bytes_each, moment &when)
{
    auto guard = lock();
    const members *ranks = counts() ? table_of(where, guard) : nullptr;
    if (ranks)
        for (int rank : *ranks)
            told(rank, bytes_each, when);
}

void profiler::remember(MPI_Request request, comm_argument where, int peer, std::uint64_t bytes)
{
    auto guard = lock();
    const members *ranks = profile_ ? table_of(where, guard) : nullptr;
    if (ranks && peer >= 0 && static_cast<std::size_t>(peer) < ranks->size())
        persistent_[request].push_back({(*ranks)[static_cast<std::size_t>(peer)], bytes});
}

void profiler::started(std::span<const MPI_Request> requests, moment &when)
{
    const auto guard = lock();
    if (persistent_.empty() || !counts())
        return;
    for (const MPI_Request request : requests)
        if (const auto at = persistent_.find(request); at != persistent_.end())
            for (const persistent &each : at->second)
                told(each.peer, each.bytes, when);
}

void profiler::forget(MPI_Request request)
{
    const auto guard = lock();
    if (!persistent_.empty())
        persistent_.erase(request);
}

profiler::place_in profiler::mine(MPI_Comm comm)
{
    if (const communicator *known = layer::find(comm))
        return {known->rank, known->size()};
    place_in here{};
    PMPI_Comm_rank(comm, &here.rank);
    PMPI_Comm_size(comm, &here.size);
    return here;
}

bool profiler::is_inter(MPI_Comm comm)
{
    if (const communicator *known = layer::find(comm))
        return known->inter;
    int answer = 0;
    return PMPI_Comm_test_inter(comm, &answer) == MPI_SUCCESS && answer;
}

int profiler::others(MPI_Comm comm)
{
    if (const communicator *known = layer::find(comm))
        return static_cast<int>(known->peers().size());
    int size = 0;
    if (is_inter(comm))
        PMPI_Comm_remote_size(comm, &size);
    else
        PMPI_Comm_size(comm, &size);
    return size;
}

members profiler::destinations(MPI_Comm comm)
{
    communicator *known = layer::find(comm);
    if (!known)
        return destinations_of(comm);
    if (!known->destinations)
        known->destinations = std::make_unique<members>(destinations_of(known->real.load()));
    return *known->destinations;
}

} // namespace zc::migrate
