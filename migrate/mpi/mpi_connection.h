/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <mpi.h>

#include "connection.h"

namespace zc::migrate {

/** A communicator of a leaver (rank 0) and its successor (rank 1). */
class mpi_connection final : public connection {
  public:
    /** Takes over @between, the result of a spawn or the parent. Collective. */
    mpi_connection(MPI_Comm between, bool successor);
    MPI_Comm comm() const noexcept { return comm_; }

    bool start_send(int kind, std::span<const std::byte> bytes, ticket &it) override;
    bool start_send_until_taken(int kind, ticket &it) override;
    bool send_and_forget(int kind) override;
    bool start_receive(int kind, std::span<std::byte> room, ticket &it) override;
    bool test(ticket &it, bool &done, std::size_t &bytes) override;
    void cancel(ticket it) override;
    bool probe(std::optional<message> &there) override;
    bool receive(const message &there, std::span<std::byte> room) override;

    void synchronise() override;
    void close() override;
    void forget(bool silent) override;

    void make_progress() override;
    double now() const override;
    void rest(unsigned rounds) override;

  private:
    MPI_Comm between_;
    MPI_Comm comm_ = MPI_COMM_NULL;
    int peer_;
};

} // namespace zc::migrate
