/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_connection.h"

#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sched.h>

#include "world.h"

namespace zc::migrate {

namespace {

static_assert(sizeof(MPI_Request) <= sizeof(connection::ticket));

connection::ticket ticket_of(MPI_Request request)
{
    connection::ticket it = connection::kNone;
    if (request != MPI_REQUEST_NULL)
        std::memcpy(&it, &request, sizeof request);
    return it;
}

MPI_Request request_of(connection::ticket it)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (it != connection::kNone)
        std::memcpy(&request, &it, sizeof request);
    return request;
}

} // namespace

mpi_connection::mpi_connection(MPI_Comm between, bool successor, std::unique_ptr<wire> launcher)
    : between_(between), successor_(successor), launcher_(std::move(launcher))
{
    PMPI_Comm_set_errhandler(between_, MPI_ERRORS_RETURN);
}

MPI_Comm mpi_connection::merge() const
{
    MPI_Comm merged;
    const int code = PMPI_Intercomm_merge(between_, successor_, &merged);
    if (code != MPI_SUCCESS)
        end_unlinked(code);
    return merged;
}

bool mpi_connection::start_send(int kind, std::span<const std::byte> bytes, ticket &it)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = PMPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, kPeer, kind,
                                between_, &request);
    it = ticket_of(request);
    return code == MPI_SUCCESS;
}

bool mpi_connection::start_send_until_taken(int kind, ticket &it)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = PMPI_Issend(nullptr, 0, MPI_BYTE, kPeer, kind, between_, &request);
    it = ticket_of(request);
    return code == MPI_SUCCESS;
}

bool mpi_connection::send_and_forget(int kind)
{
    MPI_Request request;
    if (PMPI_Isend(nullptr, 0, MPI_BYTE, kPeer, kind, between_, &request) != MPI_SUCCESS)
        return false;
    PMPI_Request_free(&request);
    return true;
}

bool mpi_connection::start_receive(int kind, std::span<std::byte> room, ticket &it)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = PMPI_Irecv(room.data(), static_cast<int>(room.size()), MPI_BYTE, kPeer, kind,
                                between_, &request);
    it = ticket_of(request);
    return code == MPI_SUCCESS;
}

bool mpi_connection::test(ticket &it, bool &done, std::size_t &bytes)
{
    MPI_Request request = request_of(it);
    int flag = 0, count = 0;
    MPI_Status status;
    const int code = PMPI_Test(&request, &flag, &status);
    it = ticket_of(request);
    done = flag;
    if (flag && code == MPI_SUCCESS)
        PMPI_Get_count(&status, MPI_BYTE, &count);
    bytes = count > 0 ? static_cast<std::size_t>(count) : 0;
    return code == MPI_SUCCESS;
}

void mpi_connection::cancel(ticket it)
{
    MPI_Request request = request_of(it);
    PMPI_Cancel(&request);
}

bool mpi_connection::probe(std::optional<message> &there)
{
    int flag = 0, length = 0;
    MPI_Status status;
    there.reset();
    if (PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, between_, &flag, &status) != MPI_SUCCESS)
        return false;
    if (flag) {
        PMPI_Get_count(&status, MPI_BYTE, &length);
        there = {status.MPI_TAG, static_cast<std::size_t>(length)};
    }
    return true;
}

bool mpi_connection::receive(const message &there, std::span<std::byte> room)
{
    return PMPI_Recv(room.data(), static_cast<int>(room.size()), MPI_BYTE, kPeer, there.kind,
                     between_, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

std::string mpi_connection::end_of_peer()
{
    if (!launcher_ || !end_.empty())
        return end_;
    while (const auto said = launcher_->poll()) {
        end_ = said->value("ended", end_);
        noted_ |= said->contains("noted");
    }
    if (end_.empty() && launcher_->is_closed())
        end_ = "has ended with its launcher";
    return end_;
}

bool mpi_connection::commit()
{
    constexpr double kAnswer = 20; /* seconds for the launcher, which does nothing else */
    if (!launcher_)
        return true;
    if (!end_of_peer().empty() || !launcher_->send({{"go", true}}))
        return false;
    pause pause;
    for (const double begin = seconds(); seconds() - begin < kAnswer; pause.rest()) {
        if (!end_of_peer().empty() || noted_)
            return noted_;
        make_progress(); /* the other ranks have this one answer */
    }
    return false;
}

void mpi_connection::take_back()
{
    if (launcher_)
        launcher_->send({{"back", true}});
}

bool mpi_connection::start_synchronising(ticket &it)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = PMPI_Ibarrier(between_, &request);
    it = ticket_of(request);
    return code == MPI_SUCCESS;
}

void mpi_connection::close()
{
    part(between_);
}

void mpi_connection::forget(bool silent)
{
    /* A message that is still to come would be taken for one of the next line, if that were
     * given the same context id. */
    if (silent)
        PMPI_Comm_free(&between_);
    /* Its launcher ends it, should it be stopped or busy. */
    launcher_.reset();
}

void mpi_connection::make_progress()
{
    migrate::make_progress();
}

double mpi_connection::now() const
{
    return seconds();
}

void mpi_connection::rest(unsigned rounds)
{
    if (rounds < 2048) {
        sched_yield();
    } else {
        const timespec span{0, 50'000};
        nanosleep(&span, nullptr);
    }
}

} // namespace zc::migrate
