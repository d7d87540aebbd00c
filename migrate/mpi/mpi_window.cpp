/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_window.h"

#include "world.h"

namespace zc::migrate {

namespace {

/* Accumulates, as only these are atomic for each element; fetching ones, as these are done
 * at the target when they are done here. */
class mpi_round final : public window::round {
  public:
    mpi_round(MPI_Win over, int others, window::place where, MPI_Op op, std::int64_t value)
        : round(others), sent_(got.size(), value), requests_(got.size(), MPI_REQUEST_NULL)
    {
        for (std::size_t i = 0; i < got.size(); i++)
            PMPI_Rget_accumulate(&sent_[i], 1, MPI_INT64_T, &got[i], 1, MPI_INT64_T,
                                 static_cast<int>(i) + 1, static_cast<MPI_Aint>(where), 1,
                                 MPI_INT64_T, op, over, &requests_[i]);
    }

    bool is_done() override
    {
        bool all = true;
        for (MPI_Request &request : requests_) {
            int done = 1;
            if (request != MPI_REQUEST_NULL)
                PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
            all = all && done;
        }
        return all;
    }

    bool has_answered(std::size_t i) const override { return requests_[i] == MPI_REQUEST_NULL; }

    void wait() override
    {
        for (MPI_Request &request : requests_)
            wait_gently(request);
    }

  private:
    std::vector<std::int64_t> sent_;
    std::vector<MPI_Request> requests_;
};

MPI_Op op_of(window::operation what)
{
    switch (what) {
    case window::operation::replace:
        return MPI_REPLACE;
    case window::operation::add:
        return MPI_SUM;
    case window::operation::read:
        break;
    }
    return MPI_NO_OP;
}

} // namespace

mpi_window::mpi_window(MPI_Comm comm, words &own) : own_(own)
{
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &size_);
    PMPI_Win_create(own_.data(), sizeof own_, sizeof own_[0], MPI_INFO_NULL, comm, &window_);
    PMPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
}

void mpi_window::close()
{
    PMPI_Win_unlock_all(window_);
    PMPI_Win_free(&window_);
}

std::unique_ptr<window::round> mpi_window::start(place where, operation what, std::int64_t value)
{
    return std::make_unique<mpi_round>(window_, size_ - 1, where, op_of(what), value);
}

std::int64_t mpi_window::add(place where, std::int64_t value) noexcept
{
    /* By MPI, as rank 0 adds by MPI: an accumulate and the processor's own are not atomic to each
     * other, and where MPI has a thread of its own they can meet. */
    std::int64_t was = 0;
    PMPI_Fetch_and_op(&value, &was, MPI_INT64_T, rank_, static_cast<MPI_Aint>(where), MPI_SUM,
                      window_);
    PMPI_Win_flush(rank_, window_);
    return was;
}

} // namespace zc::migrate
