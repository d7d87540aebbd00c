/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <memory>
#include <mpi.h>

#include "connection.h"
#include "wire.h"

namespace zc::migrate {

/** The intercommunicator of a leaver and its successor. Nothing is collective before merge(). */
class mpi_connection final : public connection {
  public:
    /** Takes over @between; and a leaver's @launcher, its wire to that of the successor, if any. */
    mpi_connection(MPI_Comm between, bool successor, std::unique_ptr<wire> launcher = nullptr);
    /** Both sides: the leaver (rank 0) and its successor (rank 1). The caller gives it up. */
    MPI_Comm merge() const;

    bool start_send(int kind, std::span<const std::byte> bytes, ticket &it) override;
    bool start_send_until_taken(int kind, ticket &it) override;
    bool send_and_forget(int kind) override;
    bool start_receive(int kind, std::span<std::byte> room, ticket &it) override;
    bool test(ticket &it, bool &done, std::size_t &bytes) override;
    void cancel(ticket it) override;
    bool probe(std::optional<message> &there) override;
    bool receive(const message &there, std::span<std::byte> room) override;

    std::string end_of_peer() override;
    bool end_is_told() const override { return launcher_ != nullptr; }
    bool commit() override;
    void take_back() override;

    bool start_synchronising(ticket &it) override;
    void close() override;
    void forget(bool silent) override;

    void make_progress() override;
    double now() const override;
    void rest(unsigned rounds) override;

  private:
    static constexpr int kPeer = 0; /* the only one on the other side */

    MPI_Comm between_;
    bool successor_;
    std::unique_ptr<wire> launcher_;
    std::string end_; /* of the successor, as the launcher has said */
    bool noted_ = false;
};

} // namespace zc::migrate
