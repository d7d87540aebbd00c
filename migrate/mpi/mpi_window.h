/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <mpi.h>

#include "window.h"

namespace zc::migrate {

/** The words in a window of MPI, and its one-sided operations. */
class mpi_window final : public window {
  public:
    /** Collective over @comm. @own outlives the window. */
    mpi_window(MPI_Comm comm, words &own);
    void close() override;

    MPI_Win handle() const noexcept { return window_; }
    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return size_; }
    std::unique_ptr<round> start(place where, operation what, std::int64_t value) override;
    std::int64_t load(place where) noexcept override { return own_[where].load(); }
    void store(place where, std::int64_t value) noexcept override { own_[where].store(value); }
    std::int64_t add(place where, std::int64_t value) noexcept override;

  private:
    words &own_;
    MPI_Win window_ = MPI_WIN_NULL;
    int rank_ = 0, size_ = 1;
};

} // namespace zc::migrate
