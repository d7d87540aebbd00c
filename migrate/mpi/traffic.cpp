/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include "world.h"

namespace zc::migrate {

void traffic::open(int size, bool threads)
{
    size_ = size;
    threads_ = threads;
    sent_ = new counter[static_cast<std::size_t>(size)]{};
    received_ = new counter[static_cast<std::size_t>(size)]{};
}

std::vector<std::int64_t> traffic::copy(const counter *of)
{
    std::vector<std::int64_t> all;
    for (int rank = 0; rank < size_; rank++)
        all.push_back(of[rank].load(std::memory_order_relaxed));
    return all;
}

void traffic::restore(const std::vector<std::int64_t> &sent,
                      const std::vector<std::int64_t> &received)
{
    for (int rank = 0; rank < size_; rank++) {
        sent_[rank] = sent.at(static_cast<std::size_t>(rank));
        received_[rank] = received.at(static_cast<std::size_t>(rank));
    }
}

namespace {

/** The first message of @rank that has come and not been received, as text. */
std::string arrived_from(int rank)
{
    std::string found;
    layer::instance().each([&](const communicator &comm) {
        const members &peers = comm.peers();
        for (std::size_t peer = 0; found.empty() && peer < peers.size(); peer++) {
            int there = 0, bytes = 0;
            MPI_Status status;
            if (peers[peer] != rank || comm.real.load() == MPI_COMM_NULL)
                continue;
            PMPI_Iprobe(static_cast<int>(peer), MPI_ANY_TAG, comm.real.load(), &there, &status);
            if (!there)
                continue;
            PMPI_Get_count(&status, MPI_BYTE, &bytes);
            found = "tag " + std::to_string(status.MPI_TAG) + ", " + std::to_string(bytes) +
                    " bytes" + (comm.handle == MPI_COMM_WORLD ? "" : ", another communicator");
        }
    });
    return found;
}

} // namespace

std::string traffic::in_flight(MPI_Comm world)
{
    const std::vector<std::int64_t> sent = all_sent();
    std::vector<std::int64_t> sent_here(sent.size());
    carry_out(world, [&](MPI_Request *request) {
        return PMPI_Ialltoall(sent.data(), 1, MPI_INT64_T, sent_here.data(), 1, MPI_INT64_T, world,
                              request);
    });
    int here = 0;
    PMPI_Comm_rank(world, &here);
    for (int rank = 0; rank < size_; rank++) {
        const std::int64_t missing =
            sent_here[static_cast<std::size_t>(rank)] - received_[rank].load();
        if (missing == 0)
            continue;
        const std::string what = missing > 0 ? arrived_from(rank) : "";
        return "rank " + std::to_string(here) + " has not received " +
               (missing == 1 ? "a message" : std::to_string(missing) + " messages") + " of rank " +
               std::to_string(rank) + (what.empty() ? "" : " (" + what + ")");
    }
    return "";
}

} // namespace zc::migrate
