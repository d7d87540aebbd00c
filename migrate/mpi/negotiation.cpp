/* SPDX-License-Identifier: BSD-3-Clause */
#include "negotiation.h"

#include <algorithm>
#include <vector>

namespace zc::migrate {

namespace {

constexpr int kStampShift = 40; /* number of the request above, safe point below */

} // namespace

void negotiation::open(MPI_Comm comm, std::int64_t requests)
{
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    requests_ = requests;
    MPI_Win_create(memory_.data(), sizeof memory_, sizeof(word), MPI_INFO_NULL, comm, &window_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
}

void negotiation::close()
{
    if (window_ == MPI_WIN_NULL)
        return;
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
}

std::int64_t negotiation::stamp(std::int64_t safe_point) const noexcept
{
    return (requests_ << kStampShift) | safe_point;
}

void negotiation::tell(std::int64_t value, std::int64_t place)
{
    /* Accumulates, as only these are atomic for each element. */
    for (int rank = 1; rank < size_; rank++)
        MPI_Accumulate(&value, 1, MPI_INT64_T, rank, place, 1, MPI_INT64_T, MPI_REPLACE, window_);
    MPI_Win_flush_all(window_);
}

std::int64_t negotiation::farthest(std::int64_t n)
{
    std::vector<std::int64_t> counters(static_cast<std::size_t>(size_), n);
    const std::int64_t unused = 0;
    for (int rank = 1; rank < size_; rank++)
        MPI_Fetch_and_op(&unused, &counters[static_cast<std::size_t>(rank)], MPI_INT64_T, rank, 2,
                         MPI_NO_OP, window_);
    MPI_Win_flush_all(window_);
    return *std::max_element(counters.begin(), counters.end());
}

std::optional<std::int64_t> negotiation::find_meeting(std::int64_t n)
{
    requests_++;
    std::int64_t most = farthest(n);
    for (std::int64_t step = 1; most < kNever; step *= 2) {
        const std::int64_t proposed = std::min(most + step, kNever - 1);
        tell(stamp(proposed), 0);
        /* A round trip later: who is below now has not been there before the word was. */
        most = farthest(n);
        if (most < proposed) {
            tell(stamp(proposed), 1);
            return proposed;
        }
    }
    tell(stamp(kNever), 1);
    return std::nullopt;
}

negotiation::verdict negotiation::look(std::int64_t n) const noexcept
{
    const std::int64_t proposed = memory_[0].load(), confirmed = memory_[1].load();
    const std::int64_t request = proposed >> kStampShift, place = proposed & kNever;
    if (confirmed == ((request << kStampShift) | kNever))
        return verdict::cancelled;
    if (n != place)
        return n < place ? verdict::ahead : verdict::missed;
    return confirmed == proposed ? verdict::meet : verdict::wait;
}

void negotiation::settle() noexcept
{
    /* Rank 0 may have been rung again; the others hear of that later. */
    quiet_ = rank_ == 0 ? seen_ : proposal().load();
}

} // namespace zc::migrate
